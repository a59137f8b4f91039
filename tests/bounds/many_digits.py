"""Formulas of `bounds/` in 80-digit arithmetic."""

from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mpf

Formula = Callable[[Any, Any, int, Any], Any]


def cost(kl: Any, n: int, delta: Any) -> Any:
    """R = KL + ln(2√n/δ)."""
    return kl + mpmath.log(2 * mpmath.sqrt(n) / mpf(delta))


def coins(q: Any, p: Any) -> Any:
    """kl(q‖p), with 0 ln 0 = 0."""
    one = mpf(1)
    left = q * mpmath.log(q / p) if q else mpf(0)
    return left + ((one - q) * mpmath.log((one - q) / (one - p)) if q != 1 else mpf(0))


def inverse(q: Any, c: Any) -> Any:
    """The largest p with kl(q‖p) ≤ c, by bisection."""
    low, high = mpf(q), mpf(1)
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if coins(mpf(q), middle) <= c else (low, middle)
    return low


def catoni(beta: Any, nats: Any) -> Formula:
    """Catoni's bound at one β."""
    b = mpf(beta)
    return lambda r, k, n, d: (1 - mpmath.exp(-b * r - (k + nats(d)) / n)) / (1 - mpmath.exp(-b))


def best_catoni(r: Any, k: Any, n: int, d: Any) -> Any:
    """The best of 17 values of β, each √2 times the last, with δ shared out among them."""
    grid = [mpf(0.05) * mpmath.sqrt(2) ** i for i in range(17)]
    return min(catoni(b, lambda d: mpmath.log(17 / mpf(d)))(r, k, n, d) for b in grid)


def at_lambda(x: Any) -> Formula:
    """The bound at one λ."""
    return lambda r, k, n, d: r / (1 - x / 2) + cost(k, n, d) / (n * x * (1 - x / 2))


def xi(n: int) -> Any:
    """Σ_k C(n, k) (k/n)^k (1 − k/n)^(n − k), as it is defined."""
    terms = (mpmath.binomial(n, k) * (mpf(k) / n) ** k * (1 - mpf(k) / n) ** (n - k) for k in range(1, n))
    return sum(terms, mpf(2))
