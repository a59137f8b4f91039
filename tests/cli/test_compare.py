"""`pactrain compare` on a table of the user's own."""

import json
from pathlib import Path

import pytest

from pactrain.experiments.compare import OURS
from tests.cli.commands import flowers, run


@pytest.mark.slow
def test_the_command_on_the_users_own_table(tmp_path: Path) -> None:
    data = flowers(tmp_path / "flowers.csv")
    words = ["compare", "--data", data, "--target", "kind", "--model", "linear", "--seeds", "1", "--workers", "2"]
    done = run(*words, "--json", "found.json", cwd=tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    assert [m["name"] for m in found["methods"]] == [OURS, "SGD", "Adam", "AdamW"]
    assert [m["trainings"] for m in found["methods"]] == [1, 17, 17, 17]  # a linear network has no place for dropout
    assert all(m["score"]["mean"] > 0.5 for m in found["methods"])
    assert found["store"] == "runs/compare-flowers.sqlite"
    for word in ("PAC-Bayes", "AdamW", "test accuracy, %", "steps", "the results are kept in"):
        assert word in done.stdout
    again = json.loads(run(*words, "--json", "-", cwd=tmp_path).stdout)
    assert again["methods"] == found["methods"]
