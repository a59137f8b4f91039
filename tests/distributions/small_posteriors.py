"""Posteriors of the zoo for the tests of distributions."""

from typing import Any

import torch
from torch import Tensor

from pactrain import Posterior, Prior
from tests.zoo import ZOO, build

CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}


def moved(name: str, per: Any = "layer", seed: int = 1) -> Posterior:
    """A posterior of the zoo away from its prior."""
    posterior = Posterior(build(name), Prior(per=per))
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in posterior.means():
            p.add_(0.1 * torch.randn(p.shape, generator=g))
        posterior.log_std.add_(0.3 * torch.randn(posterior.log_std.shape, generator=g))
        posterior.prior_log_std.add_(0.2 * torch.randn(posterior.prior_log_std.shape, generator=g))
    return posterior


def loss_of(name: str, predict: Any) -> Tensor:
    """Mean loss of the first batch of a zoo entry, by its own loss or cross-entropy."""
    from pactrain.problem.as_loss import as_loss

    data, loss = ZOO[name][1](), ZOO[name][2]
    batch = data if isinstance(data, tuple) else data[0]
    return as_loss(loss, batch)(predict, batch).mean()
