"""Training with stds in closed form: how it is set up, one step, and the weight of the divergence that follows the bound."""

import math
from typing import Any

import torch

from pactrain import ranks
from pactrain.auto import Rules
from pactrain.bounds.base import Bound
from pactrain.bounds.unbounded import Unbounded
from pactrain.curvature import CurvatureStds, Moves
from pactrain.kl_weight import first_weight, followed_weight
from pactrain.losses import AnyLoss, per_example
from pactrain.not_finite import not_finite
from pactrain.posterior import Posterior
from pactrain.seeds import derive
from pactrain.trainer_state import Progress

PRIOR_GROWTH = 1.0
"""How far above its start a prior's log-std may grow under a bound for losses in [0, 1], where no moment ψ limits it: prior
and posterior could otherwise widen together at no charge until the noise drowns the network."""


def closed_form(
    posterior: Posterior,
    bound: Unbounded | Bound,
    rules: Rules,
    *,
    held_gamma: float,
    lowest: float,
    moves: Moves,
    steps: int,
) -> CurvatureStds:
    """Closed-form stds; a prior wider than it starts pays off only where no moment ψ grows with it.

    lowest: the least log-std of the prior.
    steps:  how many there will be, to see whether compiling pays.
    """
    start = float(posterior.prior_log_std.detach().max())
    return CurvatureStds(
        posterior,
        kl_weight=first_weight(bound, held_gamma),
        memory=rules.curvature_memory,
        log_std_range=(lowest, max(start, lowest) + (PRIOR_GROWTH if isinstance(bound, Bound) else 0.0)),
        first=rules.first_curvature,
        moves=moves,
        steps=steps,
    )


def curvature_step(
    curvature: CurvatureStds,
    optimizer: torch.optim.Optimizer | None,
    loss: AnyLoss,
    batch: Any,
    p: Progress,
    *,
    rate: float,
    seed: int,
) -> float:
    """One step, the means moved by the optimiser if there is one; returns the batch's loss at the draw."""
    curvature.draw(derive(seed, "noise", p.step))
    risk, value = ranks.mean_loss(per_example(loss, curvature.posterior.model, ranks.share(batch)))
    if not math.isfinite(value):
        curvature.rest()
        raise not_finite(curvature.posterior, p, value)
    risk.backward()
    curvature.learn(rate, p.step, stds=p.stage == 1)
    if optimizer is not None:
        curvature.flat.step(optimizer)
    return value


def follow_bound(curvature: CurvatureStds, bound: Unbounded | Bound, held_gamma: float, risk: float) -> None:
    """Let the divergence weigh what a bound for losses in [0, 1] makes of it at the present point."""
    if isinstance(bound, Bound):
        curvature.rest()
        kl = float(curvature.posterior.kl_by_group().sum())
        curvature.kl_weight = followed_weight(bound, held_gamma, risk, kl)
