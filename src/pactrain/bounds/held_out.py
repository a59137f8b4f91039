"""The bound of a test set (Clopper and Pearson): no divergence, any fixed predictor.

The p with P(Binomial(n, p) ≤ errors) = δ, which is BetaInv(1 − δ; errors + 1, n − errors), rounded up.  Libraries that invert
the beta function round to either side, by up to 1e-11 of p for large n, and lose small δ in 1 − δ.
"""

import math

from pactrain.bounds.kl import binary_kl, kl_inverse
from pactrain.runtime.errors import PactrainError

MARGIN = 1e-10
"""By how much the logarithm of a probability is moved to the safe side; rounding is below 1e-11 up to n = 10⁷."""


def clopper_pearson(errors: int, n: int, delta: float) -> float:
    """Bound the error of a predictor by its mistakes on examples that it was not trained on.

    Args:
        errors: Number of mistakes.
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Returns:
        An upper bound of the error; never below the exact value, and above it by less than 1e-9 of it.

    Raises:
        PactrainError: There are more errors than examples, or `delta` is no probability.

    Example:
        >>> round(clopper_pearson(3, 100, 0.05), 7)
        0.0757108
    """
    if not 0 <= errors <= n or n < 1 or not 0 < delta < 1:
        raise PactrainError(f"{errors} errors of {n} examples at δ = {delta} cannot be")
    if errors == n:
        return 1.0
    if errors == 0:
        return kl_inverse(0.0, -math.log(delta) / n)  # 1 − δ^(1/n)
    low, high = 0.0, 1.0
    while high - low > 1e-13 * high and low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if _rare(errors, n, middle, delta) else (middle, high)
    return high


def _rare(errors: int, n: int, p: float, delta: float) -> bool:
    """True only if P(Binomial(n, p) ≤ errors) ≤ δ; judged by the smaller of the two tails, which is known to more digits."""
    if errors <= n * p:
        return _log_pmf(errors, n, p) + math.log(_tail(errors, n, (1 - p) / p)) + MARGIN <= math.log(delta)
    upper = _log_pmf(errors + 1, n, p) + math.log(_tail(n - errors - 1, n, p / (1 - p)))
    return upper - MARGIN >= math.log1p(-delta)


def _tail(k: int, n: int, odds: float) -> float:
    """Σ over i ≤ k of P(i) / P(k) for a binomial variable that is `odds` times likelier to fail than to succeed."""
    term = total = 1.0
    for i in range(k, 0, -1):
        ratio = odds * i / (n - i + 1)
        term *= ratio
        total += term
        if term * ratio < 1e-17 * total * (1 - ratio):
            break
    return total


def _log_pmf(k: int, n: int, p: float) -> float:
    """ln P(Binomial(n, p) = k) for k ≥ 1, with no large numbers that cancel (Loader 2000)."""
    if k == n:
        return n * math.log(p)
    stirling = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    return stirling - n * binary_kl(k / n, p) + 0.5 * math.log(n / (2 * math.pi * k) / (n - k))


def _stirling_error(m: int) -> float:
    """ln m! − ln(√(2πm) (m/e)^m)."""
    if m < 20:
        return math.lgamma(m + 1) - (m * math.log(m) - m + 0.5 * math.log(2 * math.pi * m))
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * m * m)) / (m * m)) / (m * m)) / m
