"""The divergence of a posterior from its prior, KL(Q‖P), and the ratio of their densities at a draw.

`gaussian.py` has the formulas for flat vectors.  Here the vectors are brought into the units in which the prior's stds are counted,
and large networks are worked on in pieces.
"""

import torch
from torch import Tensor

from pactrain.distributions import gaussian
from pactrain.distributions.gaussian import SMALL, GaussianKL, kl_by_group_at_once, log_density_ratio, pieces
from pactrain.distributions.random_weights import RandomWeights


def in_prior_units(weights: RandomWeights, flat: Tensor) -> Tensor:
    """Distances of weights, flat, in the units of the prior."""
    return flat if weights.units is None else flat / weights.units


def log_std_in_units(weights: RandomWeights) -> Tensor:
    """The posterior's log-stds in the units of the prior."""
    return weights.log_std if weights.units is None else weights.log_std - weights.units.log()


def exact_shift(weights: RandomWeights) -> Tensor:
    """Mean minus prior mean, flat, in float64: a difference of two bfloat16 weights rarely fits into bfloat16."""
    in_place = weights._draw is not None  # whose means are kept to be put back
    return weights.flat_means().to(torch.float64, copy=in_place).sub_(weights.prior_mean)


def kl(weights: RandomWeights) -> Tensor:
    """KL(Q‖P) in nats, float64, differentiable in means, log-stds and prior log-stds."""
    means: list[Tensor] = list(weights.means())
    if weights.units is not None:
        means = [m / weights.units[at].view_as(m) for m, at in zip(means, weights.parameter_slices, strict=True)]

    def draw_shift() -> Tensor | None:
        """How far the weights in place are from the means, None if they are the means."""
        draw = weights._draw
        return None if draw is None or draw.shift is None else in_prior_units(weights, draw.shift)

    total: Tensor = GaussianKL.apply(  # type: ignore[no-untyped-call]
        log_std_in_units(weights),
        weights.prior_log_std,
        in_prior_units(weights, weights.mean_shift()),
        draw_shift,
        weights.group_slices,
        *means,
    )
    return total


@torch.no_grad()
def kl_by_group(weights: RandomWeights, prior_log_std: Tensor) -> Tensor:
    """KL of each group in nats, float64, with the prior at the given log-stds."""
    if weights.num_weights <= SMALL:
        shift = in_prior_units(weights, exact_shift(weights))
        return kl_by_group_at_once(shift, log_std_in_units(weights), prior_log_std, weights.group_slices)
    out = torch.zeros(len(weights.groups), dtype=torch.float64, device=weights.log_std.device)
    draw, units = weights._draw, weights.units
    for p, at, group in zip(weights.means(), weights.parameter_slices, weights.group_of_parameters, strict=True):
        mean = p.reshape(-1) if draw is None else draw.means[at]
        for part in pieces(slice(0, len(mean))):  # no vector of all weights is needed
            here = slice(at.start + part.start, at.start + part.stop)
            shift, log_std = mean[part].double() - weights.prior_mean[here], weights.log_std[here]
            if units is not None:
                shift, log_std = shift / units[here], log_std - units[here].log()
            own = prior_log_std[group : group + 1]
            out[group] += gaussian.kl_by_group(shift, log_std, own, [slice(0, len(shift))])[0]
    return out


@torch.no_grad()
def log_ratio(weights: RandomWeights, noise: Tensor, prior_log_std: Tensor) -> float:
    """ln dQ/dP at the draw mean + std·noise, with the prior at the given log-stds."""
    log_std, noise = log_std_in_units(weights).detach().double(), noise.double()
    shift = log_std.exp().mul_(noise).add_(in_prior_units(weights, exact_shift(weights)))
    return float(log_density_ratio(shift, noise, log_std, prior_log_std, weights.group_slices))
