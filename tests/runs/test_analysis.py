"""What a report shows of the answers, rows and columns."""

import json

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from torch import nn

import pactrain
from pactrain.certification.before_training import Described
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.scores import BINS
from pactrain.runs.analysis import MOST_COLUMNS, SHOWN, importance, reliability
from tests.runs.test_rivals import problem
from tests.zoo import rows


def test_reliability_is_that_of_scikit_learn() -> None:
    g = np.random.default_rng(0)
    sure = g.uniform(0.4, 1, 300)
    right = g.random(300) < sure
    found = reliability(sure, right)
    share, confidence = calibration_curve(right, sure, n_bins=BINS)
    assert [b["right"] for b in found] == pytest.approx(list(share))
    assert [b["confidence"] for b in found] == pytest.approx(list(confidence))
    assert sum(b["n"] for b in found) == 300


def test_shuffling_shows_which_columns_a_network_uses() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=g)
    y = (x[:, 1] > 0).long()
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, -5.0, 0.0], [0.0, 5.0, 0.0]]))
        model.bias.zero_()
    whole = problem((x, y), (x, y), LOSSES["cross_entropy"])
    assert whole.test is not None
    assert whole.test.table is not None
    found = importance(model, whole.test.table, whole, encoding={}, weights=8, seed=0)
    assert found[0]["column"] == "column 1"
    assert found[0]["loss"] == pytest.approx(0.5, abs=0.1)
    assert [c["loss"] for c in found[1:]] == [0.0, 0.0]
    both = {"numeric": [{"name": "a"}], "categorical": [{"name": "b", "categories": ["x", "y"]}]}
    assert [c["column"] for c in importance(model, whole.test.table, whole, encoding=both, weights=8, seed=0)] == [
        "b",
        "a",
    ]
    assert importance(model, whole.test.table, whole, encoding={}, weights=10**10, seed=0) == []


def test_a_classification_run_keeps_its_hardest_rows_and_little_else() -> None:
    x, y = rows()
    u, v = rows(40, seed=2)
    result = pactrain.fit(nn.Linear(6, 3), (x, y), test=(u, v), budget="3 epochs")
    found = result.analysis
    assert np.sum(found["confusion"]) == 40
    chances = result.model(u).softmax(1).double()
    sure, answer = chances.max(1)
    assert [r["row"] for r in found["unsure"]] == sure.argsort(stable=True)[:SHOWN].tolist()
    worst = found["mistakes"]
    assert all(answer[r["row"]] == r["answer"] != r["true"] == v[r["row"]] for r in worst)
    assert [r["confidence"] for r in worst] == sorted((r["confidence"] for r in worst), reverse=True)
    assert found["unsure"][0]["inputs"] == pytest.approx(u[found["unsure"][0]["row"]].tolist(), rel=1e-5)
    assert len(found["importance"]) == 6 <= MOST_COLUMNS
    assert len(json.dumps(found)) < 20_000


def test_a_regression_run_keeps_points_in_the_targets_unit() -> None:
    x, _ = rows()
    result = pactrain.fit(nn.Linear(6, 1), (x, x[:, :1].clone()), budget="3 epochs")
    found = result.analysis
    assert found["rows"] == "training"
    assert sorted(found["points"]["true"]) == pytest.approx(sorted(x[:, 0].tolist()))
    errors = [abs(r["answer"] - r["true"]) for r in found["mistakes"]]
    assert errors == sorted(errors, reverse=True)
    assert "importance" not in found  # rows that it was trained on would flatter columns it memorised


def test_rows_to_look_at_carry_their_labels() -> None:
    data = Described(rows(), labels=lambda at: {"row": str(at + 1000), "body": "a text"})
    found = pactrain.fit(nn.Linear(6, 3), data, test=rows(20, seed=2), budget="2 epochs").analysis
    assert found["unsure"]
    for row in [*found["unsure"], *found["mistakes"]]:
        assert row["labels"] == {"row": str(row["row"] + 1000), "body": "a text"}
