"""`Plan`: how a posterior is to be trained, decided before the first step."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from pactrain.bounds.base import Bound
from pactrain.bounds.moment import Moment
from pactrain.problem.untrained import Untrained
from pactrain.rules.rules import Rules
from pactrain.training.budget import Budget
from pactrain.training.gamma_search import HeldGamma
from pactrain.training.gradient_steps import OptimizerFactory
from pactrain.training.precision import Computing


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a trainer has to know beside the posterior and the problem.

    Attributes:
        rules: The rules of the run.
        bound: The bound that is minimised.
        moment: The scan of the prior.
        untrained: What the untrained network showed.
        gamma: The γ that stage 1 is held at first.
        lr: Learning rate of the means.
        budget: The most that training may take.
        pays: Part of the divergence's first weight that is held in a level of a recursive certificate; otherwise None.
        seed: Everything random follows from it.
        computing: How a step is computed.
        optimizer: The user's own optimiser, if there is one.
        stop: True once the user has asked for an end.
    """

    rules: Rules
    bound: Bound
    moment: Moment
    untrained: Untrained
    gamma: HeldGamma
    lr: float
    budget: Budget
    seed: int
    pays: float | None = None
    computing: Computing = field(default_factory=Computing)
    optimizer: OptimizerFactory | None = None
    stop: Callable[[], bool] = lambda: False

    @property
    def prior_range(self) -> tuple[float, float]:
        """Between which log-stds the prior is kept: those that were scanned, and none below what the rules allow."""
        lowest, highest = float(self.moment.log_stds[0]), float(self.moment.log_stds[-1])
        least = self.rules.min_prior_std
        return (max(lowest, math.log(least)) if least else lowest, highest)
