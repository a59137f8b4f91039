"""What training starts with, besides the network: the std of prior and posterior, γ and the learning rate."""

import math
from typing import Any

import numpy as np
from torch import nn

from pactrain.bounds.unbounded import Unbounded
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.random_weights import mean_abs
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import trains_batch_norm
from pactrain.rules.constants import LARGEST_CHANGE, NORMALISED_CHANGE, NORMALISED_KL_WEIGHT, STEP_IN_STDS
from pactrain.rules.gamma.linear_leave_one_out import Linearised, linearise
from pactrain.rules.knee import knee
from pactrain.rules.rules import Rules


def start_std(rules: Rules, posterior: Posterior, bound: Unbounded) -> float:
    """The std at which prior and posterior start."""
    if rules.start == "knee":
        found = float(np.exp(bound.moment.log_stds[knee(bound.at_start().numpy(), rules.knee)]))
    else:
        scale = mean_abs(posterior.prior_mean)
        found = math.sqrt(scale) if rules.start == "mean_abs_variance" else scale
    return max(found, rules.min_prior_std)


def linearised_at_start(
    rules: Rules, posterior: Posterior, batches: Batches, loss: Loss, seed: int
) -> Linearised | None:
    """How far the data may move the weights, from the linearised network; None where γ does not follow from it."""
    batch = next(iter(batches.ordered()))
    if rules.stds != "curvature" or rules.held == "gamma_max" or normalised_classes(posterior.model, loss, batch):
        return None
    return linearise(posterior, batches, loss, seed)


def held_gamma(rules: Rules, found: Linearised | None, std: float, *, normalised: int = 0) -> float:
    """The γ at which stage 1 is held, with a prior that starts at `std`; `normalised` is the number of examples for a network with BatchNorm
    that learns classes, 0 for others."""
    if found is not None:
        gamma = found.first_gamma(std)
        return min(rules.gamma_max, gamma) if found.classes else gamma
    if normalised and rules.held != "gamma_max":
        return min(rules.gamma_max, 1 / (NORMALISED_KL_WEIGHT * normalised))
    return rules.gamma_max


def rate(rules: Rules, std: float, posterior: Posterior, loss: Loss, batch: Any) -> float:
    """The learning rate of the means at the beginning of training, with a prior that starts at `std`."""
    if rules.lr is not None:
        return rules.lr
    sizes = [float(p.detach().abs().mean()) for p in posterior.means() if p.ndim > 1]
    relative = [1 / size for size in sizes if size > 0]  # change of each matrix for a unit step in all weights
    if relative and normalised_classes(posterior.model, loss, batch):
        return NORMALISED_CHANGE / math.hypot(*relative)
    return min(STEP_IN_STDS * std, LARGEST_CHANGE / sum(relative) if relative else math.inf)


def normalised_classes(model: nn.Module, loss: Loss, batch: Any) -> bool:
    """True if classes are learned by a network with BatchNorm."""
    return loss.is_classification(batch) and trains_batch_norm(model)
