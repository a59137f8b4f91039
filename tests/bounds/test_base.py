"""What all bounds share: defaults and the check of their arguments."""

import math
from collections.abc import Callable

import pytest

from pactrain import PactrainError
from pactrain.bounds import BBB, CGF, KL, Bound, Catoni, Classic, Lambda, Quad, SubGaussian


def test_defaults() -> None:
    assert [make(7).delta for make in (KL, BBB, Catoni, Lambda, CGF)] == [0.05] * 5
    assert BBB(10).value(0.1, 5.0) == pytest.approx(0.6)
    assert (CGF(10).k, CGF(10).gamma_min, CGF(10).gamma_max) == (1.0, 1e-3, 10.0)
    assert [make(10).certifies for make in (KL, Quad, Classic, Lambda, Catoni)] == [True] * 5
    assert [make(10).certifies for make in (BBB, SubGaussian, CGF)] == [False] * 3


@pytest.mark.parametrize("make", [KL, Classic, Quad, Lambda, Catoni, BBB, CGF])
def test_arguments_are_checked(make: Callable[..., Bound]) -> None:
    assert (make(1).n, make(5, 1e-12).delta, make(5, 1 - 1e-12).delta) == (1, 1e-12, 1 - 1e-12)
    for n, delta in ((0, 0.05), (-1, 0.05), (5, 0.0), (5, 1.0), (5, -0.5), (5, 1.5), (5, math.nan)):
        with pytest.raises(PactrainError, match=r"at least one example|strictly between"):
            make(n, delta)


def test_fixed_parameters_are_checked() -> None:
    assert (Lambda(5, lam=1e-9).lam, Lambda(5, lam=1.99).lam, Catoni(5, beta=1e-9).beta) == (1e-9, 1.99, 1e-9)
    for lam in (0.0, -0.5, 2.0, 2.5):
        with pytest.raises(PactrainError, match="lam="):
            Lambda(5, lam=lam)
    for beta in (0.0, -0.5, math.inf):
        with pytest.raises(PactrainError, match="beta="):
            Catoni(5, beta=beta)
