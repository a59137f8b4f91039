"""Constants of the presets at work: the floor of the prior's stds."""

import pytest
import torch

import pactrain
from pactrain.rules.presets import AUTHORS, AUTO
from pactrain.rules.rules import Rules
from tests.problem.batch_norm import short
from tests.zoo import build


@pytest.mark.parametrize("rules", [AUTO.replace(held="gamma_max"), AUTHORS.replace(std_lr=0.5)])
def test_no_prior_std_falls_below_its_floor(rules: Rules) -> None:
    def smallest(floor: float) -> tuple[float, float]:
        result = pactrain.fit(build("mlp"), data, preset=short(rules, min_prior_std=floor))
        last = result.history[-1]["prior_std"]
        return min(last.values()), float(result.posterior.prior_log_std.detach().exp().min())

    x = torch.randn(48, 6, generator=torch.Generator().manual_seed(0))
    data = x, (x[:, 0] > 0).long() + (x[:, 1] > 0)
    free = smallest(0.0)[1]
    floor = 1.25 * free
    assert smallest(floor) == pytest.approx((floor, floor), rel=1e-5)
