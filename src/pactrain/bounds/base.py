"""The skeleton shared by the bounds for losses in [0, 1].  No torch: values are plain floats.

A bound is a frozen formula of (risk, KL).  `value` is what is reported, in float64; `slopes` are its two partial
derivatives, with which it becomes an objective: the total has the bound's value, and its gradient is

    slope_risk · ∇risk + slope_kl · ∇KL
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pactrain.bounds.objective import Objective
from pactrain.runtime.errors import PactrainError

if TYPE_CHECKING:
    from torch import Tensor

    from pactrain.distributions.posterior import Posterior


@dataclass(frozen=True)
class Assumptions:
    """What must be true for the value to hold."""

    loss: str = "in [0, 1]"
    prior: str = "chosen without the examples that are counted"
    examples: str = "independent, from the distribution of new data"


@dataclass(frozen=True)
class Bound(ABC):
    """A bound for a loss in [0, 1] from `n` examples that may fail with probability `delta`."""

    n: int
    delta: float = 0.05

    name: ClassVar[str]
    assumptions: ClassVar[Assumptions] = Assumptions()
    certifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.n < 1:
            raise PactrainError(f"n={self.n}: the bound needs at least one example")
        if not 0 < self.delta < 1:
            raise PactrainError(f"delta={self.delta} must lie strictly between 0 and 1; 0.05 means 95 % confidence")

    @abstractmethod
    def value(self, risk: float, kl: float) -> float:
        """The bound on the risk on new data; it may exceed 1 (then it is vacuous) and is never clipped."""

    @abstractmethod
    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        """Partial derivatives of the value in risk and in KL."""

    def __call__(self, losses: "Tensor", posterior: "Posterior") -> Objective:
        """The objective at per-example losses in [0, 1] (or their mean) under one draw of `posterior`."""
        risk, kl = losses.mean(), posterior.kl()
        at_risk, at_kl = float(risk.detach()), float(kl.detach())
        value = self.value(at_risk, at_kl)
        slope_risk, slope_kl = self.slopes(at_risk, at_kl)
        total = value + slope_risk * (risk - at_risk) + slope_kl * (kl - at_kl)
        return Objective(total, risk, (value - risk).detach(), kl, slope_risk / (slope_kl * self.n))

    def cost(self, kl: float) -> float:
        """R = KL + ln(2√n/δ), the price that most bounds pay."""
        return kl + math.log(2 * math.sqrt(self.n) / self.delta)
