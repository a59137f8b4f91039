"""The bound of Langford, Seeger and Maurer for losses in [0, 1], and the binary divergence behind it.  No torch."""

import math


def binary_kl(q: float, p: float) -> float:
    """kl(q‖p) of two coins, in nats."""
    if not 0 <= q <= 1 or not 0 <= p <= 1:
        raise ValueError(f"binary_kl needs two numbers in [0, 1], not {q} and {p}")
    if q == p:
        return 0.0
    if (p == 0 and q > 0) or (p == 1 and q < 1):
        return math.inf
    left = 0.0 if q == 0 else q * math.log(q / p)
    right = 0.0 if q == 1 else (1 - q) * (math.log1p(-q) - math.log1p(-p))
    return max(0.0, left + right)


def kl_inverse(q: float, c: float) -> float:
    """The largest p with kl(q‖p) ≤ c: bisection in float64, the upper end is returned.

    >>> round(kl_inverse(0.02, 0.01), 5)
    0.04652
    """
    if not 0 <= q <= 1 or math.isnan(c) or c < 0:
        raise ValueError(f"kl_inverse needs q in [0, 1] and c ≥ 0, not q={q}, c={c}")
    if q == 1 or c == math.inf:
        return 1.0
    if q == 0:
        return min(1.0, math.nextafter(-math.expm1(-c), 2.0))
    low, high = q, 1.0
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (middle, high) if binary_kl(q, middle) <= c else (low, middle)


def kl_bound(risk: float, kl: float, n: int, delta: float) -> float:
    """kl⁻¹(risk, (KL + ln(2√n/δ)) / n), for all posteriors at once with probability 1 − δ."""
    return kl_inverse(risk, (kl + math.log(2 * math.sqrt(n) / delta)) / n)


def monte_carlo(mean: float, draws: int, delta: float) -> float:
    """Upper bound of an expectation in [0, 1] from the mean of `draws` independent values, with probability 1 − δ."""
    return kl_inverse(mean, math.log(2 / delta) / draws)
