"""Trained networks whose left-out loss is asked for."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.as_loss import as_loss
from pactrain.problem.losses import AnyLoss
from pactrain.problem.read_data import as_batches
from pactrain.rules.gamma.trained_leave_one_out import LeaveOneOut

CPU = torch.device("cpu")
GAMMA, STD = 3.0, 0.4


def minimise(model: nn.Module, x: Tensor, y: Tensor, loss: str) -> None:
    """To the least of  Σ losses + |Δ|²/(2 γ std²)."""
    start = [p.detach().clone() for p in model.parameters()]
    find = torch.optim.LBFGS(
        model.parameters(),
        lr=1.0,
        max_iter=500,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def objective() -> Tensor:
        find.zero_grad()
        moved = sum((p - s).square().sum() for p, s in zip(model.parameters(), start, strict=True))
        total = as_loss(loss, (x, y))(model, (x, y)).sum() + moved / (2 * GAMMA * STD**2)
        total.backward()
        return total

    find.step(objective)


def trained(outputs: int, loss: str, n: int = 25) -> tuple[Posterior, nn.Module, Tensor, Tensor]:
    source = torch.Generator().manual_seed(1)
    x = torch.randn(n, 4, generator=source, dtype=torch.float64)
    noise = torch.randn(n, generator=source, dtype=torch.float64)
    y = x.sum(1) + noise if outputs == 1 else (x[:, :outputs] + noise[:, None] * x[:, 1:2]).argmax(1)
    torch.manual_seed(0)
    start = nn.Linear(4, outputs).double()
    model = copy.deepcopy(start)
    posterior = Posterior(model, Prior(per="model", std=STD))
    minimise(model, x, y, loss)
    with torch.no_grad():
        posterior.log_std.fill_(-20.0)
        posterior.prior_log_std.fill_(torch.tensor(STD).log())
    return posterior, start, x, y


def asked(posterior: Posterior, data: Any, loss: str | AnyLoss) -> LeaveOneOut:
    batches = as_batches(data, batch_size=None, device=CPU, dtype=torch.float64)
    chosen = as_loss(loss, next(iter(batches.ordered())))
    n = sum(len(chosen(posterior.model, b)) for b in batches.ordered())
    return LeaveOneOut(posterior, batches, chosen, n, seed=0)
