"""Closed-form steps of the stds and the prior, and the weight of the divergence in them."""

import math
from typing import Any

import torch

from pactrain.bounds.base import Bound
from pactrain.distributions.posterior import Posterior
from pactrain.problem.losses import Loss
from pactrain.rules.rules import Rules
from pactrain.runtime.seeds import derive
from pactrain.training.curvature import CurvatureStds
from pactrain.training.not_finite import not_finite
from pactrain.training.precision import Computing
from pactrain.training.state import Progress
from pactrain.training.update_formulas import Moves

GUESS_RISK, GUESS_KL = 0.05, 0.1
"""Where a bound for losses in [0, 1] is expected to end (risk, and nats per example), for the first weight of the KL: at
the start the KL is nearly zero, and the slopes there would tie the posterior to the prior for good."""

FOLLOW = 4.0
"""How far from that first weight the bound's own slopes may lead."""

SURROGATE = 0.5
"""Weight of the KL relative to the slopes at the clipped loss: the error, which is what people want bounded, is about three
times the clipped cross-entropy where training ends and pays for more nats than it.  Picked on MNIST."""


def first_weight(bound: Bound, held_gamma: float) -> float:
    """The weight of the divergence at the γ that is held, or by the bound's slopes where training may end."""
    return _weight(bound, held_gamma, GUESS_RISK, GUESS_KL * bound.n)


def followed_weight(bound: Bound, held_gamma: float, risk: float, kl: float) -> float:
    """The weight at the present point: the bound's slopes there, within a factor of the first weight."""
    first = first_weight(bound, held_gamma)
    return min(max(_weight(bound, held_gamma, risk, kl), first / FOLLOW), first * FOLLOW)


def _weight(bound: Bound, held_gamma: float, risk: float, kl: float) -> float:
    return (1.0 if bound.holds_gamma else SURROGATE) * bound.kl_weight(risk, kl, held_gamma)


PRIOR_GROWTH = 1.0
"""How far above its start a prior's log-std may grow under a bound for losses in [0, 1], where no moment ψ limits it: prior
and posterior could otherwise widen together at no charge until the noise drowns the network."""


def closed_form(
    posterior: Posterior,
    bound: Bound,
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
        log_std_range=(lowest, max(start, lowest) + (0.0 if bound.holds_gamma else PRIOR_GROWTH)),
        first=rules.first_curvature,
        moves=moves,
        steps=steps,
    )


def curvature_step(
    curvature: CurvatureStds,
    optimizer: torch.optim.Optimizer | None,
    loss: Loss,
    batch: Any,
    p: Progress,
    *,
    rate: float,
    seed: int,
    how: Computing,
) -> float:
    """One step, the means moved by the optimiser if there is one; returns the batch's loss at the draw."""
    curvature.draw(derive(seed, "noise", p.step))
    value = how.backward(loss, curvature.posterior.model, batch)
    if not math.isfinite(value):
        curvature.rest()
        raise not_finite(curvature.posterior, p, value)
    how.clip(curvature.posterior.means())
    curvature.learn(rate, p.step, stds=p.stage == 1)
    if optimizer is not None:
        curvature.flat.step(optimizer)
    return value


def follow_bound(curvature: CurvatureStds, bound: Bound, held_gamma: float, risk: float) -> None:
    """Let the divergence weigh what a bound for losses in [0, 1] makes of it at the present point."""
    if not bound.holds_gamma:
        curvature.rest()
        kl = float(curvature.posterior.kl_by_group().sum())
        curvature.kl_weight = followed_weight(bound, held_gamma, risk, kl)
