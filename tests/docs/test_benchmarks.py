"""The harness that judges the rules: it resumes, and pairs methods by row and seed."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from judge import comparison, mean_and_error, paired  # noqa: E402
from methods import scores  # noqa: E402
from problems import Arrays, of_arrays  # noqa: E402


def result(row: str, seed: int, method: str, score: float, **more: float) -> dict[str, object]:
    return {"row": row, "seed": seed, "method": method, "score": score, **more}


def test_gains_are_paired_and_positive_where_the_method_is_better() -> None:
    results = [
        result("numbers", 0, "auto", -2.0),
        result("numbers", 0, "other", -1.0),
        result("numbers", 1, "other", -1.0),  # without a partner
        result("classes", 0, "auto", 90.0, nll=0.3, ece=0.02),
        result("classes", 0, "other", 89.0, nll=0.2, ece=0.05),
    ]
    found = paired(results, "other")
    assert found["rmse"] == {"numbers": [pytest.approx(69.3, abs=0.1)]}
    assert found["accuracy"] == {"classes": [-1.0]}
    assert found["nll"]["classes"] == [pytest.approx(0.1)]
    assert found["ece"]["classes"] == [pytest.approx(-3.0)]
    assert "| other | -1 ± nan (0–1) | +69.3 ± nan (1–0) |" in comparison(results, ["other"])


def test_rows_count_alike_however_many_seeds_they_have() -> None:
    assert mean_and_error({"a": [1.0, 3.0], "b": [4.0]}) == (3.0, 1.0)


def test_labels_as_noisy_as_in_training_are_scored_in_expectation() -> None:
    x, y = torch.zeros(8, 1), torch.arange(8) % 2
    problem = of_arrays(
        Arrays(x, y, x, y, outputs=2, wrong=0.5), 0
    )  # half of them drawn at random: three in four are right
    found = scores(problem, torch.where(torch.arange(2) == y[:, None], 0.75, 0.25), chances=True)
    assert (found["score"], found["ece"], found["confidence"]) == (100.0, 0.25, 0.75)
    assert found["ece like training"] == pytest.approx(0.0)
    assert found["nll like training"] == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))


@pytest.mark.slow
def test_the_harness_resumes(tmp_path: Path) -> None:
    store = tmp_path / "store.jsonl"
    command = [sys.executable, "benchmarks/judge.py", "--rows", "iris", "--seeds", "1", "--methods", "plain,auto"]
    command += ["--store", str(store)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    first = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "2/2" in first.stdout
    again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "/2" not in again.stdout
    kept = [json.loads(line) for line in store.read_text().splitlines()]
    assert {r["method"] for r in kept} == {"plain", "auto"}
    assert all(r["score"] > 80 for r in kept)
    assert "| iris | 1 |" in again.stdout
