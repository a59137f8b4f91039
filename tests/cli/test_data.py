"""`pactrain data`: which sets there are and where they lie."""

import json
from pathlib import Path

import pytest

from pactrain.cli.main import main
from tests.data.image_files import write_idx

pytestmark = pytest.mark.usefixtures("no_data_of_the_machine")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["data", *words])
    captured = capsys.readouterr()
    assert isinstance(done.value.code, int)
    return done.value.code, captured.out, captured.err


def test_data_list_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_idx(tmp_path / "fashion_mnist", compress=True)
    code, out, _ = told(capsys, "list", "--data-root", str(tmp_path), "--json", "-")
    sets = {s["name"]: s for s in json.loads(out)["sets"]}
    assert code == 0
    assert sets["fashion_mnist"]["where"] == str(tmp_path / "fashion_mnist")
    assert sets["digits"]["present"]
    assert Path(sets["digits"]["where"]).is_dir()
    assert not sets["cifar10"]["present"]
    assert sets["cifar100"]["classes"] == 100
    assert sets["uci:yacht"]["fetchable"] is False
    code, out, _ = told(capsys, "list")
    assert all(name in out for name in sets)
    assert "not here: pactrain data fetch cifar10" in out
    assert told(capsys, "where", "fashion_mnist", "--data-root", str(tmp_path))[1].strip() == str(
        tmp_path / "fashion_mnist"
    )
    for words, message in (
        (("where", "cifar10"), "pactrain data fetch cifar10"),
        (("where", "moebius"), "use one of digits"),
        (("fetch", "uci:yacht"), "no home to be fetched from; put uci_regression.npz"),
    ):
        code, out, err = told(capsys, *words)
        assert (code, out) == (2, "")
        assert message in err
