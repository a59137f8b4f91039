"""Attacks on the recursive certificate: its record, and levels that the data does not have."""

import json
import shutil
from pathlib import Path

import pytest

from pactrain import Certificate
from pactrain.cli.trust import Outside
from tests.attacks.forging import consistent, read
from tests.attacks.forging import pactrain as command
from tests.attacks.test_forgery import unmasked


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on wine, whose columns are standardised with statistics of counted rows."""
    folder = tmp_path_factory.mktemp("recursive") / "run"
    words = ["--data", "wine", "--test-fraction", "0", "--model", "mlp:16", "--certificate", "recursive"]
    assert command("train", *words, "--budget", "3 epochs", "--out", folder) == 0
    return folder


def test_it_is_made_again_and_no_leaf_of_it_can_be_changed(run: Path) -> None:
    (s,) = Certificate.read(run / "certificate.json").statements
    assert s.bound == "recursive"
    assert command("verify", run, "--trust") == 0
    assert any(unmasked(run, Outside(trust=True)))  # some are consistent in themselves


def test_levels_of_other_sizes_are_found_out(run: Path, tmp_path: Path) -> None:
    """Ten times the rows in the record and in what the run noted."""
    shutil.copytree(run, tmp_path / "run")
    metrics, record = json.loads((run / "metrics.json").read_text()), read(run)
    facts = metrics["certificate"]
    facts["levels"] = [f"{10 * int(n)};{rest}" for n, rest in (level.split(";", 1) for level in facts["levels"])]
    inputs = record["statements"][0]["inputs"]
    record["n"] = inputs["n"] = 10 * inputs["n"]
    inputs["levels"] = " / ".join(facts["levels"])
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "run" / "certificate.json").write_text(json.dumps(consistent(record)))
    assert command("verify", tmp_path / "run" / "certificate.json") == 0  # the arithmetic alone
    assert command("verify", tmp_path / "run", "--trust") == 2
