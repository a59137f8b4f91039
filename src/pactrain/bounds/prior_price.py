"""The price of a prior whose scale was learned: stds are rounded to values fixed in advance, and the choice is charged.

The prior grid: each group's log-std is rounded to one of N points fixed in advance; k ln N nats.
Dziugaite and Roy: prior variances c·e^{−j/b}, j = 1, 2, …, b = 100, c = 0.1; choosing j costs 2 ln(b ln(c/variance)) + ln(π²/6)
nats, for each group whose scale is chosen by itself.
"""

import math

import torch
from torch import Tensor

from pactrain.bounds.moment import LOG_STD_RANGE
from pactrain.distributions.posterior import Posterior

B = 100.0
C = 0.1


def dziugaite_roy(log_std: float) -> list[tuple[float, float]]:
    """The two neighbours (rounded log-std, its price in nats) of a learned log-std; the caller keeps the better.

    A scale above √c has no neighbour above; the largest one is offered.
    """
    j = B * (math.log(C) - 2 * log_std)
    choices = {max(1, math.floor(j)), max(1, math.ceil(j))}
    return [(0.5 * (math.log(C) - i / B), 2 * math.log(i) + math.log(math.pi**2 / 6)) for i in sorted(choices)]


PRIOR_GRID = tuple(LOG_STD_RANGE[0] + 0.005 * i for i in range(1401))
"""Log-stds to which a learned prior is rounded, fixed before any data is seen, so that choosing costs ln 1401 a group.

Rounding by u costs about u² nats a weight: with a grid ten times coarser, millions of weights would pay thousands of nats to
save two and a third."""


def priced_priors(posterior: Posterior) -> dict[str, tuple[Tensor, float]]:
    """The ways of paying for the prior: its log-stds as the bound takes them, and the price in nats, by name.

    Where the data chose among several means of the prior, or the units of weights, that choice is paid for as well.
    """
    choice = math.log(posterior.prior_choices) + posterior.unit_nats
    if posterior.prior_fixed:
        return {"fixed in advance": (posterior.prior_log_std.detach(), choice)}
    ways = {"prior grid": round_prior(posterior), "Dziugaite-Roy": round_prior_dziugaite_roy(posterior)}
    return {name: (log_stds, price + choice) for name, (log_stds, price) in ways.items()}


def round_prior(posterior: Posterior) -> tuple[Tensor, float]:
    """The prior's log-stds on the fixed grid (nearest point), and the price of having chosen them, in nats."""
    grid = torch.tensor(PRIOR_GRID, dtype=torch.float64)
    own = posterior.prior_log_std.detach().double().cpu()
    nearest = grid[(own[:, None] - grid[None, :]).abs().argmin(1)]
    return nearest.to(posterior.prior_log_std), len(own) * math.log(len(grid))


def round_prior_dziugaite_roy(posterior: Posterior) -> tuple[Tensor, float]:
    """The prior's log-stds on Dziugaite and Roy's scale, each group rounded to the neighbour that is cheaper in all."""
    own = posterior.prior_log_std.detach()
    neighbours = [list(dziugaite_roy(log_std)) for log_std in own.double().cpu().tolist()]
    tried = []
    for j in range(max(map(len, neighbours))):  # a group's KL depends on its own std alone: all at once
        each = [near[min(j, len(near) - 1)] for near in neighbours]
        rounded = torch.tensor([value for value, _ in each], dtype=torch.float64).to(own)
        kl = posterior.kl_by_group(rounded).tolist()
        tried.append([(nats + price, value, price) for nats, (value, price) in zip(kl, each, strict=True)])
    best = [min(prices) for prices in zip(*tried, strict=True)]
    chosen = torch.tensor([value for _, value, _ in best], dtype=torch.float64)
    return chosen.to(own), sum(price for _, _, price in best)
