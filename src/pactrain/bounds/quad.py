"""Rivasplata's quadratic bound:  (√(risk + B) + √B)²,  B = R / 2n,  R = KL + ln(2√n/δ)."""

import math
from dataclasses import dataclass

from pactrain.bounds.base import Bound


@dataclass(frozen=True)
class Quad(Bound):
    """The quadratic bound; it is Thiemann's at its best λ."""

    name = "quad"

    def value(self, risk: float, kl: float) -> float:
        b = self.cost(kl) / (2 * self.n)
        return (math.sqrt(risk + b) + math.sqrt(b)) ** 2

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        b = self.cost(kl) / (2 * self.n)
        outer, inner = math.sqrt(risk + b), math.sqrt(b)
        both = outer + inner
        return both / outer, both * (1 / outer + 1 / inner) / (2 * self.n)
