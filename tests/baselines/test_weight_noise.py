"""Noise on the weights in plain training."""

import pytest
import torch
from torch import nn

from pactrain.baselines.plain_training import Settings, train
from pactrain.baselines.weight_noise import noisy
from tests.baselines.small_problem import network, problem
from tests.zoo import weights


def test_noise_is_in_the_gradient_and_not_in_the_weights() -> None:
    """The mean of the gradients of w²/2 at w + noise is w, and its deviation that of the noise."""
    weight = nn.Parameter(torch.full((20_000,), 3.0))
    before = weight.detach().clone()
    with noisy([weight], 0.5, torch.Generator().manual_seed(0)):
        (0.5 * weight.square()).sum().backward()
    assert torch.equal(weight.detach(), before)
    assert weight.grad is not None
    assert float(weight.grad.mean()) == pytest.approx(3.0, abs=0.02)
    assert float(weight.grad.std()) == pytest.approx(0.5, abs=0.02)


def test_noise_and_dropout_regularise_and_are_seeded() -> None:
    data, found = problem(), {}
    for name, settings in (
        ("plain", Settings(lr=0.01, steps=60)),
        ("noise", Settings(lr=0.01, steps=60, noise=0.3)),
        ("dropout", Settings(lr=0.01, steps=60, dropout=0.5)),
    ):
        losses = []
        for seed in (0, 0, 1):
            model = network()
            losses.append((train(model, data, settings, seed=seed).train["loss"], weights(model)))
        assert torch.equal(losses[0][1], losses[1][1])
        assert not torch.equal(losses[0][1], losses[2][1])
        found[name] = losses[0][0]
    assert found["noise"] > found["plain"]
    assert found["dropout"] > found["plain"]
