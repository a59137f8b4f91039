"""What the caller of `fit` asked for, as all its steps read it."""

from collections.abc import Callable
from dataclasses import dataclass

from pactrain.rules.presets import Rules
from pactrain.runtime.events import Callback
from pactrain.training.gradient_steps import OptimizerFactory
from pactrain.training.schedule import Budget


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of `fit` that are not about the network or its data, with names and texts understood."""

    rules: Rules
    bound: str
    delta: float
    seed: int
    budget: Budget
    prior_data: float
    optimizer: OptimizerFactory | None
    tell: Callback  # all the callbacks as one
    stop: Callable[[], bool]  # has the user asked for an end?
