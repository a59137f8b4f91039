"""The optimiser for loops that are not ours: what it does with the gradients that such a loop leaves."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from pactrain import Posterior, Prior
from pactrain.training.closed_form_optimizer import ClosedFormAdam
from tests.zoo import build, rows

Cleared = Callable[[ClosedFormAdam, nn.Module], None]


def trained(clear: Cleared, steps: int = 60) -> Posterior:
    """A posterior after some steps of a loop that clears its gradients with `clear`."""
    posterior = Posterior(build("mlp"), Prior(std=0.1))
    optimizer = ClosedFormAdam(posterior, lr=0.01, kl_weight=1e-4, memory=0.9, first=1.0, log_std_range=(-6.0, -1.0))
    x, y = rows(40)
    torch.manual_seed(0)
    for _ in range(steps):
        clear(optimizer, posterior.model)
        F.cross_entropy(posterior(x), y).backward()
        optimizer.step()
    return posterior


def test_the_network_alone_may_be_cleared_of_gradients() -> None:
    """`model.zero_grad()`, as Hugging Face's Trainer calls it, does not reach the posterior's log-stds: their gradients must not add up."""
    usual = trained(lambda optimizer, _: optimizer.zero_grad())
    by_model = trained(lambda _, model: model.zero_grad())
    assert torch.isfinite(usual.log_std).all()
    assert torch.equal(usual.log_std, by_model.log_std)
    assert torch.equal(usual.prior_log_std, by_model.prior_log_std)
