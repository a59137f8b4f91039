"""Thiemann's bound:  risk / (1 − λ/2) + R / (n λ (1 − λ/2)),  R = KL + ln(2√n/δ),  for all λ in (0, 2) at once.

The best λ is  2 / (√(2 n risk / R + 1) + 1);  there the bound is the quadratic one.
"""

import math
from dataclasses import dataclass

from pactrain.bounds.base import ScalarBound
from pactrain.runtime.errors import PactrainError


@dataclass(frozen=True)
class Lambda(ScalarBound):
    """Thiemann's bound at a given λ, or at the best one, which costs nothing.

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
        lam: λ, strictly between 0 and 2; None takes the best.

    Raises:
        PactrainError: `n` is below 1, `delta` is no probability, or `lam` lies outside (0, 2).

    Example:
        >>> round(Lambda(10_000, 0.05).value(risk=0.2, kl=500.0), 6)
        0.402208
    """

    lam: float | None = None

    name = "lambda"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lam is not None and not 0 < self.lam < 2:
            raise PactrainError(f"lam={self.lam} must lie strictly between 0 and 2")

    def best_lambda(self, risk: float, kl: float) -> float:
        """Choose λ.

        Args:
            risk: Mean loss under the posterior.
            kl: KL(posterior ‖ prior) in nats.

        Returns:
            The λ that makes the bound smallest, or the one given.
        """
        if self.lam is not None:
            return self.lam
        return 2 / (math.sqrt(2 * self.n * risk / self.cost(kl) + 1) + 1)

    def value(self, risk: float, kl: float) -> float:
        lam = self.best_lambda(risk, kl)
        return risk / (1 - lam / 2) + self.cost(kl) / (self.n * lam * (1 - lam / 2))

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        lam = self.best_lambda(risk, kl)
        return 1 / (1 - lam / 2), 1 / (self.n * lam * (1 - lam / 2))
