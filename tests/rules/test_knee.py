"""The std at which training starts."""

import numpy as np
import torch
from torch import nn

import pactrain
from pactrain import Posterior
from pactrain.rules.knee import knee
from pactrain.rules.presets import AUTO
from pactrain.rules.start_values import start_std
from tests.zoo import rows


def test_values_with_and_without_a_knee() -> None:
    assert knee(np.array([2.3, 2.29, 2.31, 2.5, 9.0]), 0.02) == 2
    assert knee(np.array([3.5, 3.1, 3.0, 3.3, 9.0]), 0.02) == 2  # noise helps at first and then harms: a knee
    assert knee(np.array([3.5, 3.45, 3.3, 3.0, 3.0]), 0.02) == 1
    assert knee(np.array([3.5, 3.5, 3.5]), 0.02) == 2  # noise of any size is harmless


def test_noise_does_not_drown_a_network_that_errs_confidently() -> None:
    """The random weights are below a norm and a frozen head, so that noise can only make the answers less sure."""
    x, y = rows()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16, elementwise_affine=False), nn.Linear(16, 3))
    adam = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        adam.zero_grad()
        nn.functional.cross_entropy(model(x), (y + 1) % 3).backward()
        adam.step()
    model[2].requires_grad_(False)
    posterior = Posterior(model)
    bound = AUTO.bound(48, 0.05, pactrain.estimate_moment(posterior, (x, y), draws=10), 2)
    at_start, stds = bound.at_start().numpy(), np.exp(bound.moment.log_stds)
    assert at_start[-1] <= 1.02 * at_start.min() < 0.9 * at_start[0]
    chosen = int(np.argmin(np.abs(stds - start_std(AUTO, posterior, bound))))
    assert (at_start[: chosen + 1] > 0.98 * at_start[0]).all()
    assert at_start[chosen + 1] < 0.98 * at_start[0]
