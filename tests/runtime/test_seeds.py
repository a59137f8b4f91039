"""A seed decides everything, and the caller's randomness is left alone."""

import torch

import pactrain
from tests.zoo import SHORT, build, rows, weights


def test_a_seed_decides_everything_and_the_callers_randomness_is_left_alone() -> None:
    one, other = build("batchnorm"), build("batchnorm")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = pactrain.fit(one, rows(), seed=3, budget=SHORT)
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(5)
    second = pactrain.fit(other, rows(), seed=3, budget=SHORT)
    assert torch.equal(weights(first.model), weights(second.model))
    assert first.certificate == second.certificate
    third = pactrain.fit(build("batchnorm"), rows(), seed=4, budget=SHORT)
    assert not torch.equal(weights(first.model), weights(third.model))
