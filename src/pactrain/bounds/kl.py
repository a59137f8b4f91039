"""The bound of Langford, Seeger and Maurer:  kl⁻¹(risk, R/n),  R = KL + ln(2√n/δ),  and the divergence behind it.

kl(q‖p) = q ln(q/p) + (1−q) ln((1−q)/(1−p)) is the divergence between two coins; kl⁻¹(q, c) is the largest p with
kl(q‖p) ≤ c.  It is found by bisection, and what is returned is never below the true value.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from pactrain.bounds.base import ScalarBound

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
    """Invert the divergence between two coins: the largest p with kl(q‖p) ≤ c, never rounded down.

    Args:
        q: A probability, for example an empirical risk.
        c: A number of nats, at least 0.

    Returns:
        The largest p in [q, 1].

    Raises:
        ValueError: `q` is no probability, or `c` is negative or NaN.

    Example:
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
class KL(ScalarBound):
    """The bound of Langford, Seeger and Maurer, the tightest of the classical bounds for a loss in [0, 1].

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Example:
        >>> round(KL(10_000, 0.05).value(risk=0.2, kl=500.0), 6)
        0.344834
    """

    name = "kl"

    def value(self, risk: float, kl: float) -> float:
        return kl_inverse(min(1.0, max(0.0, risk)), self.cost(kl) / self.n)

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        q = min(1 - 2e-9, max(1e-9, risk))
        p = min(self.value(q, kl), 1 - 1e-9)  # above q, so that the slope in p is positive
        in_p = (1 - q) / (1 - p) - q / p
        in_q = math.log(q / p) - math.log((1 - q) / (1 - p))
        return -in_q / in_p, 1 / (self.n * in_p)


@lru_cache
def log_xi(n: int) -> float:
    """ln ξ(n), ξ(n) = Σ_k C(n, k) (k/n)^k (1 − k/n)^(n − k) = Σ_k n!/((n − k)! n^k): what the bound pays beside the KL and ln(1/δ).

    It lies below ln(2√n), the usual upper limit, by nearly half a nat.  Never rounded down.

    >>> round(math.exp(log_xi(2)), 9), round(math.exp(log_xi(10_000)), 3)
    (2.5, 125.999)
    """
    if n < 1:
        raise ValueError(f"n is {n}, and there has to be an example")
    term = total = 1.0
    for k in range(1, n + 1):
        total += term
        term *= 1 - k / n  # this ratio falls, so that the rest is at most a geometric series
        if term * n < 1e-17 * k * total:
            total += term * n / k
            break
    return math.log(total) + 4e-16 * k


def kl_bound(risk: float, kl: float, n: int, delta: float) -> float:
    """kl⁻¹(risk, (KL + ln(ξ(n)/δ)) / n), for all posteriors at once with probability 1 − δ."""
    return kl_inverse(risk, (kl + log_xi(n) - math.log(delta)) / n)
