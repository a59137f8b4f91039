"""The bound with λ: the best one, or a fixed one."""

import math

import pytest

from pactrain.bounds import Lambda


def test_best_lambda() -> None:
    price = 30 + math.log(2 * math.sqrt(500) / 0.05)
    assert Lambda(500, 0.05).best_lambda(0.1, 30.0) == pytest.approx(2 / (math.sqrt(2 * 500 * 0.1 / price + 1) + 1))
    assert Lambda(500, 0.05, lam=0.3).best_lambda(0.1, 30.0) == 0.3
