"""Catoni's bound for a fixed β > 0:  (1 − exp(−β risk − (KL + ln 1/δ) / n)) / (1 − e^{−β}).

β must not depend on the data; to take the best of a grid of N values, δ is divided by N.
"""

import math
from dataclasses import dataclass

from pactrain.bounds.base import ScalarBound
from pactrain.runtime.errors import PactrainError

BETAS = tuple(0.05 * 2 ** (i / 2) for i in range(17))
"""The grid used when no β is given: 0.05 to 12.8."""


@dataclass(frozen=True)
class Catoni(ScalarBound):
    """Catoni's bound at a given β, or at the best β of a grid that is paid for.

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
        beta: A positive number fixed in advance; None takes the best of `BETAS`, and δ is divided by their number.

    Raises:
        PactrainError: `n` is below 1, `delta` is no probability, or `beta` is not positive and finite.

    Example:
        >>> round(Catoni(10_000, 0.05, beta=1.0).value(risk=0.2, kl=500.0), 4)
        0.3503
    """

    beta: float | None = None

    name = "catoni"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta is not None and not 0 < self.beta < math.inf:
            raise PactrainError(f"beta={self.beta} must be positive and finite")

    def _at(self, beta: float, risk: float, kl: float) -> float:
        nats = math.log(1 / self.delta) + (0.0 if self.beta is not None else math.log(len(BETAS)))
        return -math.expm1(-beta * risk - (kl + nats) / self.n) / -math.expm1(-beta)

    def best_beta(self, risk: float, kl: float) -> float:
        """Choose β.

        Args:
            risk: Mean loss under the posterior.
            kl: KL(posterior ‖ prior) in nats.

        Returns:
            The β of the grid that makes the bound smallest, or the one given.
        """
        if self.beta is not None:
            return self.beta
        return min(BETAS, key=lambda beta: self._at(beta, risk, kl))

    def value(self, risk: float, kl: float) -> float:
        return self._at(self.best_beta(risk, kl), risk, kl)

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        beta = self.best_beta(risk, kl)
        left = 1 / -math.expm1(-beta) - self._at(beta, risk, kl)  # exp(−β risk − …) / (1 − e^{−β})
        return beta * left, left / self.n
