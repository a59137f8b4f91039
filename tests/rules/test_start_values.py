"""Starting std and learning rate."""

import pytest
import torch
from torch import nn

import pactrain
from pactrain import Posterior
from pactrain.problem.named_losses import LOSSES
from pactrain.rules.presets import AUTHORS, AUTO, PAPER
from pactrain.rules.start_values import rate, start_std
from tests.problem.batch_norm import network, short, task
from tests.zoo import build


def test_the_floor_holds_from_the_start() -> None:
    posterior = Posterior(build("mlp"))
    x = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
    moment = pactrain.estimate_moment(posterior, (x, torch.arange(20) % 3), draws=2)
    for rules in (AUTO, PAPER, AUTHORS):
        assert start_std(rules.replace(min_prior_std=2.0), posterior, rules.bound(20, 0.05, moment, 2)) == 2.0


def test_the_rate_of_classes_behind_batch_norm_follows_how_matrices_turn() -> None:
    model, (x, y) = network(), task()
    posterior = Posterior(model)
    sizes = [float(p.detach().abs().mean()) for p in (model[0].weight, model[-1].weight)]  # type: ignore[operator]
    turning = 0.5 / sum(1 / size**2 for size in sizes) ** 0.5
    assert rate(AUTO, 0.01, posterior, LOSSES["cross_entropy"], (x, y)) == pytest.approx(turning)
    assert rate(AUTO, 0.01, posterior, LOSSES["mse"], (x, x[:, 0, 0, :2])) == pytest.approx(0.002)
    plain = Posterior(nn.Sequential(*(layer for layer in model if not isinstance(layer, nn.BatchNorm2d))))
    assert rate(AUTO, 0.01, plain, LOSSES["cross_entropy"], (x, y)) == pytest.approx(0.002)
    assert rate(AUTO.replace(lr=0.3), 0.01, posterior, LOSSES["cross_entropy"], (x, y)) == 0.3
    assert pactrain.fit(model, (x, y), preset=short(AUTO)).metrics["learning_rate"] == pytest.approx(turning)
