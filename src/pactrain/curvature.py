"""Posterior and prior stds in closed form.

At a minimum of  risk + KL·weight  over log std_i:

    std_i² = 1 / (h_i / weight + 1 / prior_std_g²)

with h_i the curvature of the risk under noise.  By Stein's lemma g_i ε_i / std_i (gradient at the draw times the noise)
is an unbiased estimate of h_i; its moving average with Lin, Schmidt and Khan's correction keeps the variance positive
("Handling the positive-definite constraint in the Bayesian learning rule", 2020).  The prior minimises the KL:

    prior_std_g² = mean over the group of std² + (mean − prior mean)²
"""

import torch
from torch import Tensor

from pactrain.gaussian import group_sums, spread
from pactrain.posterior import Posterior

MOMENTUM = 0.9
"""Share of the old average in the average of gradients that a natural step follows."""


class CurvatureStds:
    """Keeps the curvature average and writes the stds it implies into the posterior."""

    def __init__(
        self,
        posterior: Posterior,
        *,
        kl_weight: float,
        memory: float,
        log_std_range: tuple[float, float],
        first: float = 1.0,
    ) -> None:
        self.posterior, self.kl_weight, self.memory = posterior, kl_weight, memory
        self.log_std_range = log_std_range
        self.precision = self._prior_precision()
        self.curvature = (
            first * kl_weight * self.precision
        )  # the data's information to begin with, relative to the prior's
        self.momentum = torch.zeros_like(self.curvature)
        self._write()

    def _prior_precision(self) -> Tensor:
        with torch.no_grad():
            return spread(
                torch.exp(-2 * self.posterior.prior_log_std), self.posterior.log_std, self.posterior.group_slices
            )

    @torch.no_grad()
    def _write(self) -> None:
        variance = self.curvature.div(self.kl_weight).add_(self.precision).reciprocal_()
        self.posterior.log_std.copy_(variance.log_().mul_(0.5))

    @torch.no_grad()
    def update(self) -> None:
        """Take in one step's gradient (the hook of `sampled()` has left g·std·ε in `log_std.grad`)."""
        grad = self.posterior.log_std.grad
        if grad is None:
            return
        h, rate = self.curvature, 1 - self.memory
        observed = grad.div_((2 * self.posterior.log_std).exp_())
        gap = h - observed
        positive = self.precision.mul(self.kl_weight).add_(h)
        h.sub_(gap, alpha=rate).add_(gap.square_().div_(positive), alpha=0.5 * rate * rate)
        h.clamp_(min=0.0)
        self.posterior.log_std.grad = None
        self._write()

    @torch.no_grad()
    def update_prior(self) -> None:
        """Set the prior's stds to their best values, within the scanned range and below the knee, if it is learned."""
        posterior = self.posterior
        if not posterior.prior_log_std.requires_grad:
            return
        second = (2 * posterior.log_std).exp_().addcmul_(posterior.mean_shift(), posterior.mean_shift())
        sizes = torch.tensor([g.stop - g.start for g in posterior.group_slices], dtype=torch.float64)
        best = 0.5 * torch.log(group_sums(second, posterior.group_slices) / sizes.to(second.device))
        posterior.prior_log_std.copy_(best.clamp(*self.log_std_range))
        self.precision = self._prior_precision()
        self._write()

    @torch.no_grad()
    def restore(self, curvature: Tensor, momentum: Tensor) -> None:
        """Go on from saved averages; the posterior must hold the state saved with them."""
        self.curvature.copy_(curvature)
        self.momentum.copy_(momentum)
        self.precision = self._prior_precision()

    @torch.no_grad()
    def natural_step(self, rate: float, step: int) -> None:
        """Move the means by `rate` of a Newton step (the natural gradient of the objective), at most `rate` stds each.

        Adam moves every weight by its rate whatever its gradient, and the wandering of weights that do not matter is
        charged in the KL; a natural step moves them in proportion to their own posterior std.
        """
        posterior = self.posterior
        for p, at in zip(posterior.means(), posterior.parameter_slices, strict=True):
            mine = self.momentum[at]
            if p.grad is None:
                mine.mul_(MOMENTUM)
            else:
                mine.lerp_(p.grad.reshape(-1).to(mine.dtype), 1 - MOMENTUM)
        pull = posterior.mean_shift().mul_(self.precision).mul_(self.kl_weight)
        whole = pull.add_(self.momentum, alpha=1 / (1 - MOMENTUM ** (step + 1)))
        whole.div_(self.curvature + self.kl_weight * self.precision)
        limit = posterior.log_std.exp()
        whole = torch.minimum(torch.maximum(whole, -limit), limit)
        for p, at in zip(posterior.means(), posterior.parameter_slices, strict=True):
            p.sub_(whole[at].view_as(p).to(p.dtype), alpha=rate)

    @torch.no_grad()
    def add_mean_gradient(self) -> None:
        """Add the KL's share to the gradients of the means."""
        posterior = self.posterior
        pull = posterior.mean_shift().mul_(self.precision).mul_(self.kl_weight)
        for p, at in zip(posterior.means(), posterior.parameter_slices, strict=True):
            share = pull[at].view_as(p).to(p.dtype)
            p.grad = share if p.grad is None else p.grad.add_(share)
