"""`pactrain card`."""

import json
from pathlib import Path

import pytest

import pactrain
from pactrain.cli.main import main
from tests.zoo import build, rows


def test_the_card_is_written(tmp_path: Path) -> None:
    pactrain.fit(build("mlp"), rows(), budget="1 epoch", out=tmp_path / "run")
    for words, file in (([], tmp_path / "run" / "README.md"), (["--out", f"{tmp_path}/card.md"], tmp_path / "card.md")):
        with pytest.raises(SystemExit) as ended:
            main(["card", str(tmp_path / "run"), *words, "--json", str(tmp_path / "said.json")])
        assert ended.value.code == 0
        assert file.read_text().startswith("---\nlibrary_name:")
        assert json.loads((tmp_path / "said.json").read_text()) == {"card": str(file)}
