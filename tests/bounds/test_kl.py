"""The inverse of the binary kl, and the bound made of it, against 80-digit arithmetic."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from pactrain.bounds import KL
from pactrain.bounds.kl import binary_kl, kl_bound, kl_inverse, log_xi
from tests.bounds.many_digits import coins, inverse, xi


@pytest.mark.parametrize("q", [0.0, 1e-9, 0.003, 0.2, 0.5, 0.81, 0.9999, 1.0])
def test_binary_kl_on_a_grid(q: float) -> None:
    for p in (1e-9, 0.0029, 0.0031, 0.1, 0.19, 0.2, 0.2001, 0.3, 0.5, 0.7, 0.82, 0.99, 1 - 1e-9):
        assert binary_kl(q, p) == pytest.approx(float(coins(mpf(q), mpf(p))), rel=3e-14, abs=1e-300)


def test_binary_kl_at_the_ends() -> None:
    assert [binary_kl(0.0, 0.0), binary_kl(1.0, 1.0), binary_kl(0.4, 0.4)] == [0.0] * 3
    assert [binary_kl(0.4, 0.0), binary_kl(0.4, 1.0), binary_kl(1.0, 0.0), binary_kl(0.0, 1.0)] == [math.inf] * 4
    for q, p in ((-0.5, 0.5), (1.5, 0.5), (0.5, -0.5), (0.5, 1.5), (-0.5, 1.5)):
        with pytest.raises(ValueError, match="two numbers"):
            binary_kl(q, p)


def test_kl_inverse_at_the_ends() -> None:
    assert kl_inverse(1.0, 0.1) == kl_inverse(0.3, math.inf) == kl_inverse(0.0, 1e6) == kl_inverse(0.0, math.inf) == 1.0
    assert kl_inverse(0.3, 0.0) >= 0.3
    assert kl_inverse(0.3, 0.0) == pytest.approx(0.3, abs=1e-15)
    assert kl_inverse(0.0, 0.0) == pytest.approx(0.0, abs=1e-15)
    for q, c in ((-0.5, 0.5), (1.5, 0.5), (0.5, -0.5), (0.5, math.nan), (0.5, -1e-9)):
        with pytest.raises(ValueError, match="kl_inverse needs"):
            kl_inverse(q, c)


@pytest.mark.parametrize("q", [0.0, 1e-6, 0.02, 0.5, 0.95])
def test_kl_inverse_raises_the_right_hand_side_by_a_hair(q: float) -> None:
    for c in (1e-9, 1e-4, 0.03, 0.7, 4.0):
        raised = mpf(c) * (1 + mpf(1e-13))
        wanted = 1 - mpmath.exp(-raised) if q == 0 else inverse(q, raised)
        assert abs(mpf(kl_inverse(q, c)) - wanted) <= 2 * mpf(math.ulp(float(wanted))), (q, c)


def test_the_kl_bound_takes_any_risk() -> None:
    assert KL(100, 0.05).value(-0.2, 5.0) == KL(100, 0.05).value(0.0, 5.0)
    assert KL(100, 0.05).value(1.3, 5.0) == 1.0
    price = (5 + mpmath.log(xi(100) / mpf(0.2))) / 100
    assert kl_bound(0.1, 5.0, 100, 0.2) == pytest.approx(float(inverse(0.1, price)), rel=1e-12)
    bound = KL(100, 0.05)
    assert bound.slopes(0.0, 5.0) == bound.slopes(-1.0, 5.0) == bound.slopes(1e-9, 5.0)
    assert bound.slopes(1.0, 5.0) == bound.slopes(2.0, 5.0) == bound.slopes(1 - 2e-9, 5.0)
    assert bound.slopes(1.5e-9, 5.0) != bound.slopes(0.0, 5.0)
    assert bound.slopes(1 - 3e-9, 5.0) != bound.slopes(1.0, 5.0)
    assert KL(2, 0.05).slopes(0.5, 1e4)[1] == pytest.approx(1e-9, rel=1e-6)  # the value is taken as 1 − 1e-9
    for slopes in (bound.slopes(0.0, 5.0), bound.slopes(1.0, 5.0), KL(2, 0.05).slopes(0.5, 1e4)):
        assert all(0 < slope < math.inf for slope in slopes)


def test_xi() -> None:
    for n in (1, 2, 3, 7, 50, 900):
        exact = mpmath.log(xi(n))
        assert 0 <= log_xi(n) - exact < 1e-12
        assert log_xi(n) < math.log(2 * math.sqrt(n)) + 1e-12
    # Ramanujan's series √(πn/2) + 2/3 + √(π/2n)/12 − 4/(135n) + …
    n = 10**7
    series = mpmath.sqrt(mpmath.pi * n / 2) + mpf(2) / 3 + mpmath.sqrt(mpmath.pi / (2 * n)) / 12 - mpf(4) / (135 * n)
    assert float(log_xi(n) - mpmath.log(series)) == pytest.approx(0, abs=2e-11)


@pytest.mark.parametrize("q", [0.0, 1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9])
def test_kl_inverse_against_many_digits(q: float) -> None:
    for exponent in range(-40, 8):
        c = 10 ** (exponent / 4)
        true = inverse(q, mpmath.mpf(c))
        got = kl_inverse(q, c)
        assert mpmath.mpf(got) >= true, (q, c)
        assert mpmath.mpf(got) - true <= mpmath.mpf("1e-12"), (q, c)


@given(st.floats(1e-9, 1 - 1e-9), st.floats(1e-9, 1 - 1e-9))
def test_binary_kl_to_relative_precision(q: float, p: float) -> None:
    assert binary_kl(q, p) == pytest.approx(float(coins(mpmath.mpf(q), mpmath.mpf(p))), rel=3e-14, abs=1e-300)


def test_reference_values() -> None:
    assert kl_inverse(0.02, 0.01) == pytest.approx(0.04652, abs=5e-6)
    assert KL(50000, 0.025).value(0.02, 5000) == pytest.approx(0.151003, abs=5e-7)
    assert KL(10000, 0.05).value(0.2, 500) == pytest.approx(0.344834, abs=5e-7)
    assert KL(1000, 0.05).value(0.0005, 20) == pytest.approx(0.029256, abs=5e-7)
    assert kl_inverse(0, 0.3) == pytest.approx(1 - math.exp(-0.3), abs=1e-12)
    assert kl_inverse(1, 0.1) == 1
    assert kl_inverse(0.3, math.inf) == 1
    for q, c in ((-0.1, 1.0), (1.1, 1.0), (0.5, -1.0), (0.5, math.nan)):
        with pytest.raises(ValueError, match="kl_inverse"):
            kl_inverse(q, c)
    with pytest.raises(ValueError, match="binary_kl"):
        binary_kl(2, 0.5)


@given(st.floats(0, 1), st.floats(0, 20))
def test_kl_inverse_is_an_upper_inverse(q: float, c: float) -> None:
    p = kl_inverse(q, c)
    assert q <= p <= 1
    assert p == 1 or binary_kl(q, p) >= c * (1 - 1e-9) - 1e-14
    assert kl_inverse(q, c + 0.5) >= p


@pytest.mark.parametrize("n", [0, -13_470])
def test_without_examples_there_is_no_price(n: int) -> None:
    with pytest.raises(ValueError, match="there has to be an example"):
        log_xi(n)
