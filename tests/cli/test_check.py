"""Typing errors are answered before torch is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

from pactrain.cli.check import check_data
from pactrain.runtime.errors import DataError
from tests.cli.commands import ENV, flowers

WITHOUT_TORCH = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise RuntimeError("torch was imported")
sys.meta_path.insert(0, Refused())
from pactrain.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train --wrong", "Unrecognized options"),
        ("train --seed many", "Error parsing --seed"),
        ("train --data digist", "did you mean 'digits'?"),
        ("train --data flower.csv --target kind", "no file flower.csv (did you mean 'flowers.csv'?)"),
        ("train --data flowers.csv --target knid", "has no column 'knid' (did you mean 'kind'?)"),
        ("train --data flowers.csv", "say which column is to be predicted"),
        ("train --model resnet17", "did you mean 'resnet18'?"),
        ("train --budget soon", "write seconds (60)"),
        ("train --bound kkl", "bound 'kkl' is not known (did you mean 'kl'?)"),
        ("train --delta 5", "delta=5.0 must lie strictly between 0 and 1"),
        ("train --prior-data 50", "prior_data=50.0 must lie"),
        ("train --test-fraction 20", "test_fraction=20.0 must lie"),
        ("compare --model mpl", "did you mean 'mlp'?"),
        ("predict runs/none flowers.csv", "runs/none is not a run folder"),
        ("certify --explain runs/none", "runs/none is not a run folder"),
    ],
)
def test_mistakes_are_answered_without_torch(words: str, message: str, tmp_path: Path) -> None:
    flowers(tmp_path / "flowers.csv")
    command = [sys.executable, "-c", WITHOUT_TORCH, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert message in " ".join((done.stdout + done.stderr).split())


def test_names_of_data(tmp_path: Path) -> None:
    for known in ("digits", "graph:cora_ml", "uci:yacht", str(tmp_path)):
        check_data(known)
    with pytest.raises(DataError, match=r"no data set 'xyz'; use one of digits"):
        check_data("xyz")
