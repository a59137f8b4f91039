"""Clopper-Pearson: exact, and never rounded down."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from pactrain import PactrainError
from pactrain.bounds import clopper_pearson
from pactrain.bounds.held_out import _stirling_error


@pytest.mark.parametrize(("errors", "n", "delta"), [(0, 1, 0.05), (3, 100, 0.05), (37, 250, 0.01), (99, 100, 0.3)])
def test_clopper_pearson_against_sums_of_probabilities(errors: int, n: int, delta: float) -> None:
    p = mpf(clopper_pearson(errors, n, delta))
    at_most = sum(mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(errors + 1))
    assert float(at_most) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(
    ("errors", "n", "delta"), [(3, 100, 0.05), (37, 250, 0.01), (37, 250, 0.9), (7, 20, 0.8), (4, 5, 0.9)]
)
def test_clopper_pearson_is_on_the_safe_side_by_the_stated_margin(errors: int, n: int, delta: float) -> None:
    """By 1e-10 of the probability that is compared: at most δ errors, or, where that is known to more digits, 1 − δ of more."""
    p = mpf(clopper_pearson(errors, n, delta))
    parts = [mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    few, many = sum(parts[: errors + 1]), sum(parts[errors + 1 :])
    gap = mpmath.log(mpf(delta) / few) if errors <= n * p else mpmath.log(many / (1 - mpf(delta)))
    assert float(gap) == pytest.approx(1e-10, rel=0.2, abs=0)


def test_the_error_of_stirlings_formula() -> None:
    for m in (1, 2, 10, 19, 20, 21, 30, 100, 10**6):
        exact = mpmath.loggamma(m + 1) - (m * mpmath.log(m) - m + mpmath.log(2 * mpmath.pi * m) / 2)
        assert _stirling_error(m) == pytest.approx(float(exact), abs=1e-14 if m < 20 else 3e-15, rel=1e-14)


def test_clopper_pearson_at_the_ends() -> None:
    assert clopper_pearson(1, 1, 0.05) == clopper_pearson(100, 100, 0.05) == 1.0
    for errors, n in ((5, 4), (-1, 4), (0, 0)):
        with pytest.raises(PactrainError, match="cannot be"):
            clopper_pearson(errors, n, 0.05)


def test_clopper_pearson() -> None:
    assert clopper_pearson(3, 100, 0.05) == pytest.approx(0.0757108, abs=5e-8)
    assert clopper_pearson(0, 100, 0.05) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert clopper_pearson(100, 100, 0.05) == 1
    with pytest.raises(PactrainError):
        clopper_pearson(5, 4, 0.05)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(PactrainError):
            clopper_pearson(1, 4, delta)


@settings(deadline=None)
@given(st.integers(1, 80), st.floats(0, 1), st.floats(1e-300, 0.999))
def test_clopper_pearson_is_never_rounded_down(n: int, share: float, delta: float) -> None:
    """P(Binomial(n, p) ≤ errors) ≤ δ in exact arithmetic, and no longer if p is a little smaller."""
    errors = min(n - 1, int(share * n))

    def exact(p: Fraction) -> Fraction:
        return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(errors + 1)), Fraction(0))

    p = Fraction(clopper_pearson(errors, n, delta))
    assert exact(p) <= Fraction(delta)
    assert exact(p * (1 - Fraction(1, 10**9))) > Fraction(delta) or p > 1 - Fraction(1, 10**12)


KNOWN_CLOPPER_PEARSON = [
    (113, 10422, 1e-200, 0.07339908604620914),
    (0, 3260, 1e-41, 0.028543601990614786),
    (22, 1642797, 0.43, 1.4314982140661071e-05),
    (1, 3655579, 0.13, 9.729927492855237e-07),
    (3, 9745455, 0.096, 6.922293331457653e-07),
]


def test_clopper_pearson_keeps_tiny_deltas_and_many_examples() -> None:
    """Values from 60-digit arithmetic; 1 − δ, as the beta function's inverse wants it, would be 1 for the first two."""
    for errors, n, delta, expected in KNOWN_CLOPPER_PEARSON:
        value = clopper_pearson(errors, n, delta)
        assert expected <= value <= expected * (1 + 1e-9)
