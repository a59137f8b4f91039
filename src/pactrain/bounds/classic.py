"""McAllester's bound:  risk + √(R / 2n),  R = KL + ln(2√n/δ)."""

import math
from dataclasses import dataclass

from pactrain.bounds.base import ScalarBound


@dataclass(frozen=True)
class Classic(ScalarBound):
    """McAllester's square-root bound for a loss in [0, 1].

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Example:
        >>> round(Classic(10_000, 0.05).value(risk=0.2, kl=500.0), 6)
        0.35942
    """

    name = "classic"

    def value(self, risk: float, kl: float) -> float:
        return risk + math.sqrt(self.cost(kl) / (2 * self.n))

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        return 1.0, 1 / (4 * self.n * math.sqrt(self.cost(kl) / (2 * self.n)))
