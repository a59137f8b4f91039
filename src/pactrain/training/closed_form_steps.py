"""Closed-form steps of the stds and the prior, and the weight of the divergence in them."""

import math
from collections.abc import Callable
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
"""How far below that first weight the bound's own slopes may lead.  Not above: they are steepest where the KL is nearly zero, and would keep
it there."""

SURROGATE = 0.5
"""Weight of the KL relative to the slopes at the loss that is trained on, where the share of errors is not known."""


def first_weight(bound: Bound, held_gamma: float) -> float:
    """The weight of the divergence at the γ that is held, or by the bound's slopes where training may end."""
    return _weight(bound, held_gamma, GUESS_RISK, GUESS_KL * bound.n, None)


def followed_weight(bound: Bound, held_gamma: float, risk: float, kl: float, errors: float | None = None) -> float:
    """The weight at the present point: the bound's slopes there, at most the first weight, and not far below it.

    The 0-1 error is what people want bounded.  With its share x under noise, and the loss that is trained on at r, the bound's slopes are
    taken at x, and a unit of loss counts as x/r units of error (García-Pérez et al. 2025).
    """
    first = first_weight(bound, held_gamma)
    return min(max(_weight(bound, held_gamma, risk, kl, errors), first / FOLLOW), first)


def _weight(bound: Bound, held_gamma: float, risk: float, kl: float, errors: float | None) -> float:
    if bound.holds_gamma:
        return bound.kl_weight(risk, kl, held_gamma)
    if errors is None or errors <= 0 or risk <= 0:
        return SURROGATE * bound.kl_weight(risk, kl, held_gamma)
    return bound.kl_weight(errors, kl, held_gamma) * risk / errors


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


def follow_bound(
    curvature: CurvatureStds,
    bound: Bound,
    held_gamma: float,
    risk: float,
    *,
    pays: float | None,
    seed: int,
    errors_now: Callable[[], float | None],
) -> None:
    """Set the weight of the divergence from the slopes of a bound for losses in [0, 1] at the present point.

    pays:       part of the first weight that is held; None where the weight follows the slopes.
    risk:       mean of the loss that is trained on.
    seed:       of a draw of the weights, at which errors are counted.
    errors_now: the share of errors at the weights that are in place; None where there are no classes.
    """
    if pays is not None:
        curvature.kl_weight = pays * first_weight(bound, held_gamma)
    elif not bound.holds_gamma:
        with curvature.drawn(seed):
            errors = errors_now()
        kl = float(curvature.posterior.kl_by_group().sum())
        curvature.kl_weight = followed_weight(bound, held_gamma, risk, kl, errors)
