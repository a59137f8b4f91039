"""The price of a prior whose scale was learned: stds are rounded to values fixed in advance, and the choice is charged.

The log-std of a group is rounded to −½ ln(fan_in) + k/2^r with a whole number k; r, the same for all groups, is one of 0, 1, …, 12.
Prior probabilities 1/13 for r and 2^−r / (π coth(π 2^r) (1 + (k/2^r)²)) for k, which sum to one, make the choice cost

    ln 13 + Σ over groups of  r ln 2 + ln(π coth(π 2^r)) + ln(1 + (k/2^r)²)   nats.

Rounding by u costs about u² nats per weight, so small networks take a coarse step for little, large ones a fine one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

RESOLUTIONS = 13
"""Steps 1, 1/2, …, 1/4096 of the log-std, from which the best is taken."""


class HasPrior(Protocol):
    """A posterior, as far as the price of its prior goes."""

    @property
    def prior_log_std(self) -> Tensor:
        """Log of the prior's stds, one per group."""

    @property
    def prior_fixed(self) -> bool:
        """True if the stds were not learned."""

    @property
    def unit_nats(self) -> float:
        """Price in nats of having chosen the units of weights."""

    @property
    def group_of_parameters(self) -> tuple[int, ...]:
        """The group of each parameter."""

    def means(self) -> Sequence[Tensor]:
        """The parameters."""

    def kl_by_group(self, prior_log_std: Tensor | None = None) -> Tensor:
        """Each group's KL in nats, to a prior with these log-stds."""


@dataclass(frozen=True)
class PricedPrior:
    """The prior as a bound takes it: how it was paid for, its log-stds, and the price in nats."""

    name: str
    log_std: Tensor
    nats: float


def priced_prior(posterior: HasPrior) -> PricedPrior:
    """The prior with its price; where the data chose the units of weights, that is paid for as well."""
    choice = posterior.unit_nats
    if posterior.prior_fixed:
        return PricedPrior("fixed in advance", posterior.prior_log_std.detach(), choice)
    own, centres = posterior.prior_log_std.detach().double().cpu(), _centres(posterior)
    ways = []
    for r in range(RESOLUTIONS):
        steps = torch.round((own - centres) * 2**r)
        log_std = (centres + steps / 2**r).to(posterior.prior_log_std)
        nats = math.log(RESOLUTIONS) + sum(step_price(int(k), r) for k in steps.tolist())
        ways.append((float(posterior.kl_by_group(log_std).sum()) + nats, log_std, nats))
    _, log_std, nats = min(ways, key=lambda way: way[0])
    return PricedPrior("dyadic steps", log_std, nats + choice)


def step_price(k: int, r: int) -> float:
    """−ln of the prior probability of k steps of 1/2^r, in nats.

    >>> round(step_price(0, 0), 3), round(step_price(3, 2), 3)
    (1.148, 2.977)
    """
    return r * math.log(2) + math.log(math.pi / math.tanh(math.pi * 2**r)) + math.log1p((k / 2**r) ** 2)


def _centres(posterior: HasPrior) -> Tensor:
    """−½ ln of the inputs of a unit, for each group: of its largest tensor."""
    largest: dict[int, Tensor] = {}
    for group, p in zip(posterior.group_of_parameters, posterior.means(), strict=True):
        if group not in largest or p.numel() > largest[group].numel():
            largest[group] = p
    inputs = [largest[g].numel() / max(1, len(largest[g]) if largest[g].ndim else 1) for g in sorted(largest)]
    return -0.5 * torch.tensor(inputs, dtype=torch.float64, device="cpu").clamp(min=1).log()
