"""The bound of Langford, Seeger and Maurer:  kl⁻¹(risk, R/n),  R = KL + ln(2√n/δ),  and the divergence behind it.

kl(q‖p) = q ln(q/p) + (1−q) ln((1−q)/(1−p)) is the divergence between two coins; kl⁻¹(q, c) is the largest p with
kl(q‖p) ≤ c.  It is found by bisection, and what is returned is never below the true value.
"""

import math
from dataclasses import dataclass

from pactrain.bounds.base import Bound

MARGIN = 1e-13
"""By how much the right-hand side is raised, relatively, to cover the rounding of the divergence."""


def binary_kl(q: float, p: float) -> float:
    """kl(q‖p) in nats, to nearly full relative precision even where q and p almost agree."""
    if not 0 <= q <= 1 or not 0 <= p <= 1:
        raise ValueError(f"binary_kl needs two numbers in [0, 1], not {q} and {p}")
    if q == p:
        return 0.0
    if p in (0, 1):
        return math.inf
    gap, rest = p - q, 1 - q
    if abs(gap) < 0.1 * min(q, rest):
        return q * _excess(gap / q) + rest * _excess(-gap / rest)  # the linear terms cancel exactly
    left = 0.0 if not q else -q * math.log1p(gap / q) if abs(gap) < 0.5 * q else q * math.log(q / p)
    if not rest:
        return left
    return left + rest * (-math.log1p(-gap / rest) if abs(gap) < 0.1 * rest else math.log(rest / (1 - p)))


def _excess(x: float) -> float:
    """x − ln(1 + x) for |x| ≤ 0.1, by its series x²/2 − x³/3 + …"""
    power, total, k = x * x, 0.0, 2
    while True:
        added = power / k if k % 2 == 0 else -power / k
        if total + added == total:
            return total
        total += added
        power *= x
        k += 1


def kl_inverse(q: float, c: float) -> float:
    """The largest p with kl(q‖p) ≤ c, never rounded down.

    >>> round(kl_inverse(0.02, 0.01), 5)
    0.04652
    """
    if not 0 <= q <= 1 or math.isnan(c) or c < 0:
        raise ValueError(f"kl_inverse needs q in [0, 1] and c ≥ 0, not q={q}, c={c}")
    raised = c * (1 + MARGIN)
    if q == 0:
        return min(1.0, math.nextafter(-math.expm1(-raised), 2.0))
    low, high = q, 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if binary_kl(q, middle) <= raised else (low, middle)
    return high


@dataclass(frozen=True)
class KL(Bound):
    """The tightest of the classical bounds for a loss in [0, 1]."""

    name = "kl"

    def value(self, risk: float, kl: float) -> float:
        return kl_inverse(min(1.0, max(0.0, risk)), self.cost(kl) / self.n)

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        q = min(1 - 2e-9, max(1e-9, risk))
        p = min(self.value(q, kl), 1 - 1e-9)  # above q, so that the slope in p is positive
        in_p = (1 - q) / (1 - p) - q / p
        in_q = math.log(q / p) - math.log((1 - q) / (1 - p))
        return -in_q / in_p, 1 / (self.n * in_p)


def kl_bound(risk: float, kl: float, n: int, delta: float) -> float:
    """kl⁻¹(risk, (KL + ln(2√n/δ)) / n), for all posteriors at once with probability 1 − δ."""
    return KL(n, delta).value(risk, kl)


def monte_carlo(mean: float, draws: int, delta: float) -> float:
    """Upper bound of an expectation in [0, 1] from the mean of `draws` independent values, with probability 1 − δ."""
    return kl_inverse(mean, math.log(2 / delta) / draws)
