"""Bounds with a constant moment, and those of other papers."""

import math

import pytest

from pactrain.bounds import SubGaussian, casado, gamma_free


def test_a_moment_of_zero_takes_the_largest_gamma() -> None:
    assert SubGaussian(100, 0.05, k=0.0).gamma(4.0) == 10.0
    assert SubGaussian(100, 0.05, k=0.5).gamma(4.0) == pytest.approx(math.sqrt((math.log(20) + 4) / 50))


def test_bounds_of_other_papers() -> None:
    gammas, psi = [0.5, 1.0, 2.0], [0.02, 0.03, 0.32]
    for kl, whole in ((7.2, 8), (0.0, 1), (0.4, 1), (3.0, 3)):
        s = (whole + math.log(math.pi**2 * whole**2 / (6 * 0.05))) / 1000
        wanted = 0.3 + min((s + p) / g for g, p in zip(gammas, psi, strict=True))
        assert gamma_free(0.3, kl, 1000, 0.05, gammas, psi) == pytest.approx(wanted, rel=1e-12)
    s = (7.2 + math.log(1000 / 0.05)) / 999
    wanted = 0.3 + min((s + p) / g for g, p in zip(gammas, psi, strict=True))
    assert casado(0.3, 7.2, 1000, 0.05, gammas, psi) == pytest.approx(wanted, rel=1e-12)
    for of_two in (gamma_free, casado):
        with pytest.raises(ValueError, match="shorter"):
            of_two(0.3, 7.2, 1000, 0.05, gammas, psi[:2])
