"""NLL and ECE against hand-made answers."""

import math

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.scores import calibration
from tests.zoo import build, rows


class Says(nn.Module):
    """Answers with the probabilities it is fed."""

    def forward(self, chances: Tensor) -> Tensor:
        return chances.log()


def test_known_answers() -> None:
    chances = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    target = torch.tensor([0, 1, 1, 1])
    found = calibration(Says(), [(chances[:2], target[:2]), (chances[2:], target[2:])], LOSSES["cross_entropy"])
    assert found["nll"] == pytest.approx(-sum(map(math.log, (0.9, 0.1, 0.6, 0.7))) / 4)
    assert found["ece"] == pytest.approx((2 * 0.4 + 0.4 + 0.3) / 4)  # bins: two at .9 (one right), .6, .7 (both right)


def test_calibrated_answers_have_next_to_no_error_and_boastful_ones_do() -> None:
    g = torch.Generator().manual_seed(0)
    sure = 0.5 + 0.5 * torch.rand(40_000, generator=g)
    target = (torch.rand(40_000, generator=g) > sure).long()
    honest = torch.stack([sure, 1 - sure], dim=1)
    boast = torch.tensor([[0.999, 0.001]]).expand(40_000, 2)
    assert calibration(Says(), [(honest, target)], LOSSES["cross_entropy"])["ece"] < 0.015
    assert calibration(Says(), [(boast, target)], LOSSES["cross_entropy"])["ece"] == pytest.approx(0.249, abs=0.01)


def test_reported_by_fit_where_there_are_probabilities() -> None:
    x, y = rows(60)
    metrics = pactrain.fit(build("mlp"), (x, y), test=rows(40, seed=1), budget="5 epochs").metrics
    assert metrics["train"]["nll"] == pytest.approx(metrics["train"]["loss"], rel=1e-4)
    assert 0 < metrics["test"]["ece"] < 1
    assert "nll" not in pactrain.fit(build("mlp"), (x, y), loss="hinge", budget="1 epoch").metrics["train"]
    assert "nll" not in pactrain.fit(nn.Linear(6, 1), (x, x[:, 0]), budget="1 epoch").metrics["train"]
    assert calibration(Says(), [(x, y)], LOSSES["binary_cross_entropy"]) == {}


def test_a_rare_class_that_is_told_apart_is_no_failure_to_learn() -> None:
    g = torch.Generator().manual_seed(0)
    y = (torch.arange(600) % 20 == 0).long()
    x = torch.randn(600, 4, generator=g) + y[:, None]
    torch.manual_seed(0)
    learnt = pactrain.fit(nn.Linear(4, 2), (x, y), budget="200 epochs")
    assert learnt.metrics["train"]["accuracy"] < 0.97
    assert not any("largest class" in note for note in learnt.notes)
