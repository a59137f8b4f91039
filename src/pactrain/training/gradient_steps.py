"""Training by gradients of the bound in means, log-stds and prior, as the paper does, and the parameter groups of its optimiser."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pactrain.bounds.base import Bound
from pactrain.distributions.posterior import Posterior
from pactrain.problem.losses import Loss
from pactrain.rules.rules import Rules
from pactrain.runtime import distributed
from pactrain.runtime.seeds import generator
from pactrain.training.not_finite import not_finite
from pactrain.training.precision import Computing
from pactrain.training.state import Progress

OptimizerFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


@dataclass(frozen=True)
class GradientSteps:
    """Steps of an optimiser: on the bound in stage 1, on the risk of the means alone in stage 2."""

    posterior: Posterior
    loss: Loss
    bound: Bound
    rules: Rules
    log_std_range: tuple[float, float]  # of the prior
    seed: int
    computing: Computing

    def step(self, optimizer: torch.optim.Optimizer, batch: Any, p: Progress) -> float:
        """One step; returns the batch's loss at the draw."""
        posterior = self.posterior
        noise = generator(posterior.log_std.device, self.seed, "noise", p.step)
        optimizer.zero_grad(set_to_none=True)
        posterior.log_std.grad = posterior.prior_log_std.grad = None
        with posterior.sampled(noise) as model:
            risk, value = distributed.mean_loss(self.computing.losses(self.loss, model, distributed.share(batch)))
            if not math.isfinite(value):
                raise not_finite(posterior, p, value)
            if p.stage == 1:
                self.bound(risk, posterior).total.backward()
            else:
                risk.backward()
        distributed.average_gradients([*posterior.means(), posterior.log_std, posterior.prior_log_std])
        if p.stage == 2:
            posterior.log_std.grad = None
        else:
            self._warm_up(p.epoch)
        self.computing.clip(posterior.means())
        optimizer.step()
        if p.stage == 1 and posterior.prior_log_std.requires_grad:
            with torch.no_grad():
                posterior.prior_log_std.clamp_(*self.log_std_range)
        return value

    def _warm_up(self, epoch: int) -> None:
        """For the first epochs each group's log-stds move as one number."""
        grad = self.posterior.log_std.grad
        large = self.posterior.num_weights >= self.rules.warmup_weights
        if grad is not None and large and epoch < self.rules.warmup_epochs:
            for at in self.posterior.group_slices:
                grad[at] = grad[at].mean()


def param_groups(posterior: Posterior, *, stds: bool) -> list[dict[str, Any]]:
    """The means; and the stds, where they are trained by gradients."""
    groups: list[dict[str, Any]] = [{"params": posterior.means()}]
    if stds:
        log_stds = [posterior.log_std, posterior.prior_log_std]
        groups.append({"params": [p for p in log_stds if p.requires_grad]})
    return groups


def adam(groups: list[dict[str, Any]], lrs: tuple[float, float]) -> torch.optim.Optimizer:
    """The default optimiser, as one kernel for all weights where torch has one."""
    rates = [group | {"lr": rate} for group, rate in zip(groups, lrs, strict=False)]
    devices = {p.device.type for group in groups for p in group["params"]}
    return torch.optim.Adam(rates, fused=True if devices <= {"cpu", "cuda"} else None)
