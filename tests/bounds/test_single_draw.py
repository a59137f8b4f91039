"""The bound for one drawn network."""

import mpmath
import pytest
from mpmath import mpf

from pactrain.bounds import disintegrated
from tests.bounds.many_digits import inverse, xi


def test_one_drawn_network() -> None:
    price = (20 + mpmath.log(xi(1000) / mpf(0.05))) / 1000
    assert disintegrated(0.1, 20.0, 1000, 0.05) == pytest.approx(float(inverse(0.1, price)), rel=1e-12)
    assert disintegrated(0.1, -50.0, 1000, 0.05) == pytest.approx(0.1, abs=1e-15)
