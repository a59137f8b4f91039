"""Rivasplata's quadratic bound:  (√(risk + B) + √B)²,  B = R / 2n,  R = KL + ln(2√n/δ)."""

import math
from dataclasses import dataclass

from pactrain.bounds.base import ScalarBound


@dataclass(frozen=True)
class Quad(ScalarBound):
    """Rivasplata's quadratic bound for a loss in [0, 1]; it equals Thiemann's at its best λ.

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Example:
        >>> round(Quad(10_000, 0.05).value(risk=0.2, kl=500.0), 6)
        0.402208
    """

    name = "quad"

    def value(self, risk: float, kl: float) -> float:
        b = self.cost(kl) / (2 * self.n)
        return (math.sqrt(risk + b) + math.sqrt(b)) ** 2

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        b = self.cost(kl) / (2 * self.n)
        outer, inner = math.sqrt(risk + b), math.sqrt(b)
        both = outer + inner
        return both / outer, both * (1 / outer + 1 / inner) / (2 * self.n)
