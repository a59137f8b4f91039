"""What is read for the words after `--data`."""

from pathlib import Path

import pytest

from pactrain.data.load import load
from pactrain.data.tables import Columns
from pactrain.runtime.errors import DataError


def test_a_folder_does_not_hide_a_named_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").mkdir()
    (tmp_path / "mine").mkdir()
    assert load("iris").name == "iris"
    with pytest.raises(DataError, match="mine is a folder"):
        load("mine")


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"did you mean 'digits'\?"):
        load("digit")
    (tmp_path / "t.csv").write_text("price,area\n1,2\n3,4\n")
    with pytest.raises(DataError, match=r"did you mean 'price'\?"):
        load(str(tmp_path / "t.csv"), Columns(target="prise"))
