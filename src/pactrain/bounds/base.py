"""The protocol of all bounds, and the skeleton shared by those that are a formula of the risk and the KL alone.

No torch: values are plain floats.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pactrain.bounds.objective import HasDivergence, Objective, Terms
from pactrain.runtime.arguments import is_real
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

    Example:
        >>> Assumptions(loss="any").loss
        'any'
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

    Raises:
        PactrainError: `n` is below 1, or `delta` is no probability.

    Example:
        >>> from pactrain.bounds import KL
        >>> bound = KL(1000, delta=0.05)
        >>> isinstance(bound, Bound), bound.name, bound.certifies, bound.assumptions.loss
        (True, 'kl', True, 'in [0, 1]')
    """

    n: int
    delta: float = 0.05

    name: ClassVar[str]
    assumptions: ClassVar[Assumptions] = Assumptions()
    certifies: ClassVar[bool] = True
    holds_gamma: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_real(self.n) or not self.n >= 1:
            raise PactrainError(f"n={self.n!r:.60}: the bound needs at least one example")
        if not is_real(self.delta) or not 0 < self.delta < 1:
            raise PactrainError(
                f"delta={self.delta!r:.60} must lie strictly between 0 and 1; 0.05 means 95 % confidence"
            )

    @abstractmethod
    def __call__(self, losses: "Tensor", posterior: HasDivergence) -> Objective:
        """Make the objective of a training step.

        Args:
            losses: Per-example losses under one draw of `posterior`, or their mean; in the range that `assumptions` states.
            posterior: A `Posterior`, or anything with `kl()` and `prior_log_std`.

        Returns:
            The bound at this draw; differentiate its `total`.
        """

    @abstractmethod
    def terms(self, risk: float, kl: float, prior_log_std: "Tensor") -> Terms:
        """Evaluate the bound in float64, split into its terms.

        Args:
            risk: Mean loss under the posterior.
            kl: KL(posterior ‖ prior) in nats.
            prior_log_std: Log of the prior's stds, one per group; read by `Unbounded` alone.

        Returns:
            The value, its γ and its terms.
        """

    @abstractmethod
    def kl_weight(self, risk: float, kl: float, held_gamma: float) -> float:
        """How much a nat of KL weighs beside a unit of risk.

        Args:
            risk: Mean loss under the posterior.
            kl: KL(posterior ‖ prior) in nats.
            held_gamma: The γ that training holds; read only if `holds_gamma`.

        Returns:
            The ratio of the bound's slopes at this point; 1/(γ n) at the γ that is held if `holds_gamma`.
        """


@dataclass(frozen=True)
class ScalarBound(Bound):
    """A bound that is a formula of two numbers, the risk and the KL.

    `value` is what is reported, in float64; `slopes` are its two partial derivatives, with which it becomes an objective:
    the total has the bound's value, and its gradient is

        slope_risk · ∇risk + slope_kl · ∇KL

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Example:
        >>> class Plain(ScalarBound):
        ...     name = "plain"
        ...     def value(self, risk, kl):
        ...         return risk + kl / self.n
        ...     def slopes(self, risk, kl):
        ...         return 1.0, 1 / self.n
        >>> Plain(100).kl_weight(risk=0.2, kl=10.0, held_gamma=0.0)
        0.01
    """

    @abstractmethod
    def value(self, risk: float, kl: float) -> float:
        """Evaluate the bound.

        Args:
            risk: Mean loss under the posterior.
            kl: KL(posterior ‖ prior) in nats.

        Returns:
            An upper bound of the risk on new data; it may exceed 1 and is never clipped.
        """

    @abstractmethod
    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        """Differentiate the value.

        Args:
            risk: Mean loss under the posterior.
            kl: KL(posterior ‖ prior) in nats.

        Returns:
            The partial derivatives in the risk and in the KL.
        """

    def __call__(self, losses: "Tensor", posterior: HasDivergence) -> Objective:
        risk, kl = losses.mean(), posterior.kl()
        at_risk, at_kl = float(risk.detach()), float(kl.detach())
        value = self.value(at_risk, at_kl)
        slope_risk, slope_kl = self.slopes(at_risk, at_kl)
        total = value + slope_risk * (risk - at_risk) + slope_kl * (kl - at_kl)
        return Objective(total, risk, (value - risk).detach(), kl, slope_risk / (slope_kl * self.n))

    def terms(self, risk: float, kl: float, prior_log_std: "Tensor") -> Terms:
        total = self.value(risk, kl)
        slope_risk, slope_kl = self.slopes(_inside(risk), kl)
        return Terms(total, slope_risk / (slope_kl * self.n), total - risk, 0.0)  # the γ that its slopes amount to

    def kl_weight(self, risk: float, kl: float, held_gamma: float) -> float:
        slope_risk, slope_kl = self.slopes(_inside(risk), kl)
        return slope_kl / slope_risk

    def cost(self, kl: float) -> float:
        """The price that most bounds pay.

        Args:
            kl: KL(posterior ‖ prior) in nats.

        Returns:
            R = KL + ln(2√n/δ).
        """
        return kl + math.log(2 * math.sqrt(self.n) / self.delta)


def _inside(risk: float) -> float:
    return min(max(risk, INSIDE), 1 - INSIDE)
