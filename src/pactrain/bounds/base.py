"""The protocol of all bounds, and the skeleton shared by those that are a formula of the risk and the KL alone.

No torch: values are plain floats.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pactrain.bounds.objective import HasDivergence, Objective, Terms
from pactrain.runtime.errors import PactrainError

if TYPE_CHECKING:
    from torch import Tensor

INSIDE = 1e-6
"""How far from 0 and 1 the risk is kept where slopes are taken: at the ends some of them are infinite."""


@dataclass(frozen=True)
class Assumptions:
    """What must be true for the value of a bound to hold, in words.

    Attributes:
        loss: Of the loss.
        prior: Of the prior.
        examples: Of the examples.
    """

    loss: str = "in [0, 1]"
    prior: str = "chosen without the examples that are counted"
    examples: str = "independent, from the distribution of new data"


@dataclass(frozen=True)
class Bound(ABC):
    """A bound from `n` examples that may fail with probability `delta`: an objective to train with, and a value to report.

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
        name: The name by which `fit` knows the bound.
        assumptions: What must be true for the value to hold.
        certifies: True if the value is proved under these assumptions.
        holds_gamma: True if γ is a parameter of the bound, which training holds at a value that the rules choose; False if
            the slopes of the bound decide how much the divergence weighs.
    """

    n: int
    delta: float = 0.05

    name: ClassVar[str]
    assumptions: ClassVar[Assumptions] = Assumptions()
    certifies: ClassVar[bool] = True
    holds_gamma: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise PactrainError(f"n={self.n}: the bound needs at least one example")
        if not 0 < self.delta < 1:
            raise PactrainError(f"delta={self.delta} must lie strictly between 0 and 1; 0.05 means 95 % confidence")

    @abstractmethod
    def __call__(self, losses: "Tensor", posterior: HasDivergence) -> Objective:
        """The objective at per-example losses (or their mean) under one draw of `posterior`."""

    @abstractmethod
    def terms(self, risk: float, kl: float, prior_log_std: "Tensor") -> Terms:
        """The value at a risk, a divergence in nats and the prior's log-stds, split into its terms."""

    @abstractmethod
    def kl_weight(self, risk: float, kl: float, held_gamma: float) -> float:
        """How much a nat of KL weighs beside a unit of risk: at this point, or at the γ that is held if `holds_gamma`."""


@dataclass(frozen=True)
class ScalarBound(Bound):
    """A bound that is a formula of two numbers, the risk and the KL.

    `value` is what is reported, in float64; `slopes` are its two partial derivatives, with which it becomes an objective:
    the total has the bound's value, and its gradient is

        slope_risk · ∇risk + slope_kl · ∇KL

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
    """

    @abstractmethod
    def value(self, risk: float, kl: float) -> float:
        """The bound on the risk on new data; it may exceed 1 and is never clipped."""

    @abstractmethod
    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        """Partial derivatives of the value in risk and in KL."""

    def __call__(self, losses: "Tensor", posterior: HasDivergence) -> Objective:
        """The objective at per-example losses in [0, 1] (or their mean) under one draw of `posterior`."""
        risk, kl = losses.mean(), posterior.kl()
        at_risk, at_kl = float(risk.detach()), float(kl.detach())
        value = self.value(at_risk, at_kl)
        slope_risk, slope_kl = self.slopes(at_risk, at_kl)
        total = value + slope_risk * (risk - at_risk) + slope_kl * (kl - at_kl)
        return Objective(total, risk, (value - risk).detach(), kl, slope_risk / (slope_kl * self.n))

    def terms(self, risk: float, kl: float, prior_log_std: "Tensor") -> Terms:
        """The value and the γ that its slopes amount to; all but the risk is the divergence's term."""
        total = self.value(risk, kl)
        slope_risk, slope_kl = self.slopes(_inside(risk), kl)
        return Terms(total, slope_risk / (slope_kl * self.n), total - risk, 0.0)

    def kl_weight(self, risk: float, kl: float, held_gamma: float) -> float:
        """The ratio of the slopes at this point."""
        slope_risk, slope_kl = self.slopes(_inside(risk), kl)
        return slope_kl / slope_risk

    def cost(self, kl: float) -> float:
        """R = KL + ln(2√n/δ), the price that most bounds pay."""
        return kl + math.log(2 * math.sqrt(self.n) / self.delta)


def _inside(risk: float) -> float:
    return min(max(risk, INSIDE), 1 - INSIDE)
