"""McAllester's bound:  risk + √(R / 2n),  R = KL + ln(2√n/δ)."""

import math
from dataclasses import dataclass

from pactrain.bounds.base import Bound


@dataclass(frozen=True)
class Classic(Bound):
    """The classic square-root bound."""

    name = "classic"

    def value(self, risk: float, kl: float) -> float:
        return risk + math.sqrt(self.cost(kl) / (2 * self.n))

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        return 1.0, 1 / (4 * self.n * math.sqrt(self.cost(kl) / (2 * self.n)))
