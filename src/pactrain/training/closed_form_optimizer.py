"""The closed-form steps of `fit` as an ordinary torch optimiser, for loops that are not ours.

The gradient of a loss at one draw of the weights, mean + std·ε, in a log-std is g ε std: over std² it is the estimate of the curvature
that `curvature.py` averages. So everything that a step needs is in the gradients of the means and of the log-stds, which may be
accumulated over batches, averaged over processes or clipped on the way. A step uses up those of the log-stds: `model.zero_grad()`, which
many loops call instead of `optimizer.zero_grad()`, does not reach them, and multiplied by 1/std² of a later step they would grow without end.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pactrain.distributions.gaussian import spread
from pactrain.distributions.posterior import Posterior
from pactrain.training.update_formulas import (
    NO_SCRATCH,
    Vectors,
    adam_move,
    average_curvature,
    information,
    numbers_of,
    plus_product,
)

PRIOR_STEPS = 50
"""Steps between updates of the prior's stds."""


class ClosedFormAdam(torch.optim.Optimizer):
    """Adam for the means, closed forms for the stds of posterior and prior.

    The loss to call `backward()` on is the mean loss at a draw, `loss(posterior(x), y).mean()`: the divergence from the prior is added
    here, as AdamW adds weight decay.

    Args:
        posterior: What is trained; its prior is in place.
        lr: Learning rate of the means.
        kl_weight: What a nat of the divergence weighs beside a unit of loss.
        memory: Part of the curvature average that a step keeps.
        first: The curvature at the start, in units of the prior's precision times `kl_weight`.
        log_std_range: Between which log-stds the prior is kept.
    """

    def __init__(
        self,
        posterior: Posterior,
        *,
        lr: float,
        kl_weight: float,
        memory: float,
        first: float,
        log_std_range: tuple[float, float],
    ) -> None:
        posterior.prior_log_std.requires_grad_(
            False
        )  # no loss depends on it, which processes side by side would wait for
        super().__init__([{"params": posterior.means()}, {"params": [posterior.log_std]}], {"lr": lr})
        self.posterior, self.kl_weight, self.memory, self.log_std_range = posterior, kl_weight, memory, log_std_range
        curvature = first * kl_weight * self._precision()
        self.state[posterior.log_std] = {
            "step": torch.tensor(0.0, device="cpu"),
            "curvature": curvature,
            "first_moment": torch.zeros_like(curvature),
            "second_moment": torch.zeros_like(curvature),
        }
        self._write_stds()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move means, stds and, now and then, the prior's stds."""
        if closure is not None:
            with torch.enable_grad():
                closure()
        posterior, kept, precision = self.posterior, self.state[self.posterior.log_std], self._precision()
        rate = float(self.param_groups[0]["lr"])
        numbers = numbers_of(int(kept["step"]), kl_weight=self.kl_weight, memory=self.memory, rate=rate)
        means, grads = _flat(posterior.means()), _flat([_grad(p) for p in posterior.means()])
        info = information(kept["curvature"], precision, self.kl_weight)
        average_curvature(kept["curvature"], _grad(posterior.log_std), info, info.clone(), numbers)
        posterior.log_std.grad = None
        plus_product(grads, means - posterior.prior_mean, precision, times=self.kl_weight, out=grads)
        moments = kept["first_moment"], kept["second_moment"]
        vectors = Vectors(kept["curvature"], grads, means, posterior.prior_mean, means, *moments)
        adam_move(vectors, numbers, NO_SCRATCH)
        for p, at in zip(posterior.means(), posterior.parameter_slices, strict=True):
            p.copy_(means[at].view_as(p))
        kept["step"] += 1
        self._write_stds()
        if int(kept["step"]) % PRIOR_STEPS == 0:
            self._update_prior(means)
            self._write_stds()

    def _precision(self) -> Tensor:
        """1/prior_std² of every weight."""
        posterior = self.posterior
        precisions = torch.exp(-2 * posterior.prior_log_std.detach())
        return spread(precisions, posterior.log_std.detach(), posterior.group_slices)

    @torch.no_grad()
    def _write_stds(self) -> None:
        info = information(self.state[self.posterior.log_std]["curvature"], self._precision(), self.kl_weight)
        self.posterior.log_std.copy_(info.log_().mul_(-0.5))

    def _update_prior(self, means: Tensor) -> None:
        """Set the prior's stds to their best values: the mean of std² + (mean − prior mean)² in each group."""
        posterior = self.posterior
        if posterior.prior_fixed:
            return
        spreads = (2 * posterior.log_std).exp() + (means - posterior.prior_mean).square()
        for group, at in enumerate(posterior.group_slices):
            best = 0.5 * spreads[at].double().mean().log()
            posterior.prior_log_std[group] = best.clamp(*self.log_std_range)


def _grad(p: Tensor) -> Tensor:
    return torch.zeros_like(p) if p.grad is None else p.grad


def _flat(tensors: list[Any]) -> Tensor:
    return torch.cat([t.detach().reshape(-1) for t in tensors])
