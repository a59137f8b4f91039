"""The unexpected Bernstein bound in 80-digit arithmetic."""

import mpmath
import pytest
from mpmath import mpf

from pactrain.bounds.bernstein import bernstein_bound, bernstein_square


def test_unexpected_bernstein() -> None:
    b, u, n = mpf(5), mpf(0.5), 1000
    eta = u / b
    square = (-mpmath.log(1 - eta * b) - eta * b) / (eta * b**2)  # of X in X + κ X²
    assert bernstein_square(0.5) == pytest.approx(float(square * b), rel=1e-14)
    largest = b + square * b**2
    exact = mpf(0.02) * largest + (20 + mpmath.log(1 / mpf(0.05))) / (eta * n)
    found = bernstein_bound(0.02, 20.0, n, 0.05, limit=5.0, u=0.5)
    assert 0 <= float(found / exact - 1) < 1e-13
    for mean, at in ((-0.1, 0.5), (1.1, 0.5), (0.5, 0.0), (0.5, 1.0)):
        with pytest.raises(ValueError, match="needs a mean"):
            bernstein_bound(mean, 20.0, n, 0.05, limit=5.0, u=at)
