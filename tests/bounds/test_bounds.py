"""One table that every bound for losses in [0, 1] enters: known values, monotone, limits, slopes."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from pactrain import Posterior, Prior
from pactrain.bounds import BBB, CGF, KL, Catoni, Classic, Lambda, Quad, ScalarBound, SubGaussian
from tests.bounds.many_digits import Formula, at_lambda, best_catoni, catoni, cost, inverse
from tests.zoo import build

TABLE: dict[str, Callable[[int, float], ScalarBound]] = {
    "kl": KL,
    "classic": Classic,
    "quad": Quad,
    "lambda": Lambda,
    "lambda fixed": lambda n, d: Lambda(n, d, lam=0.7),
    "catoni": Catoni,
    "catoni fixed": lambda n, d: Catoni(n, d, beta=1.5),
    "bbb": lambda n, d: BBB(n, d, penalty=0.3),
    "subgaussian": lambda n, d: SubGaussian(n, d, k=0.125),
    "cgf_rodriguez": lambda n, d: CGF(n, d, k=0.125),
}

POINTS = [(0.02, 5000.0, 50000, 0.025), (0.2, 500.0, 10000, 0.05), (0.004, 20.0, 1000, 0.3), (0.9, 3.0, 40, 0.01)]


def moments(k_factor: float, low: float = 1e-3, high: float = 10.0) -> Formula:
    """risk + (ln 1/δ + KL)/(γ n) + γ K at the best γ between two ends."""

    def value(r: Any, k: Any, n: int, d: Any) -> Any:
        price = (mpmath.log(1 / mpf(d)) + k) / n
        gamma = min(max(mpmath.sqrt(price / k_factor), mpf(low)), mpf(high))
        return r + price / gamma + gamma * k_factor

    return value


CLIPPED: dict[str, Callable[[int, float], ScalarBound]] = {
    "clipped below": lambda n, d: CGF(n, d, k=0.125, gamma_min=5.0),
    "clipped above": lambda n, d: CGF(n, d, k=0.125, gamma_max=0.01),
}

FORMULAS: dict[str, Formula] = {
    "kl": lambda r, k, n, d: inverse(r, cost(k, n, d) / n),
    "classic": lambda r, k, n, d: r + mpmath.sqrt(cost(k, n, d) / (2 * n)),
    "quad": lambda r, k, n, d: (mpmath.sqrt(r + cost(k, n, d) / (2 * n)) + mpmath.sqrt(cost(k, n, d) / (2 * n))) ** 2,
    "lambda": lambda r, k, n, d: at_lambda(2 / (mpmath.sqrt(2 * n * r / cost(k, n, d) + 1) + 1))(r, k, n, d),
    "lambda fixed": at_lambda(mpf(0.7)),
    "catoni": best_catoni,
    "catoni fixed": catoni(1.5, lambda d: mpmath.log(1 / mpf(d))),
    "bbb": lambda r, k, n, d: r + mpf(0.3) * k / n,
    "subgaussian": moments(0.125),
    "cgf_rodriguez": moments(0.125),
    "clipped below": moments(0.125, low=5),
    "clipped above": moments(0.125, high=0.01),
}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", TABLE | CLIPPED)
def test_values_and_slopes(name: str, point: tuple[float, float, int, float]) -> None:
    risk, kl, n, delta = point
    bound, formula = (TABLE | CLIPPED)[name](n, delta), FORMULAS[name]
    assert bound.value(risk, kl) == pytest.approx(float(formula(mpf(risk), mpf(kl), n, delta)), rel=1e-11)
    slope_risk, slope_kl = bound.slopes(risk, kl)
    h = mpf("1e-12")
    in_risk = (formula(risk + h, mpf(kl), n, delta) - formula(risk - h, mpf(kl), n, delta)) / (2 * h)
    in_kl = (formula(mpf(risk), kl + h, n, delta) - formula(mpf(risk), kl - h, n, delta)) / (2 * h)
    assert slope_risk == pytest.approx(float(in_risk), rel=1e-7)
    assert slope_kl == pytest.approx(float(in_kl), rel=1e-7)


@pytest.mark.parametrize("name", TABLE | CLIPPED)
def test_terms_and_the_weight_of_the_divergence(name: str) -> None:
    """Risks outside (0, 1), where slopes may be infinite, are moved inside by a millionth before slopes are taken."""
    bound, nowhere = (TABLE | CLIPPED)[name](500, 0.1), torch.tensor([math.nan])
    for risk, inside in ((0.2, 0.2), (0.0, 1e-6), (1.0, 1 - 1e-6)):
        slope_risk, slope_kl = bound.slopes(inside, 30.0)
        total = bound.value(risk, 30.0)
        assert bound.terms(risk, 30.0, nowhere) == (total, slope_risk / (slope_kl * 500), total - risk, 0.0)
        assert bound.kl_weight(risk, 30.0, math.nan) == slope_kl / slope_risk
    assert not bound.holds_gamma


REFERENCE = [
    (0.02, 5000, 50000, 0.025, 0.151003, 0.238716, 0.243826),
    (0.2, 500, 10000, 0.05, 0.344834, 0.402208, 0.359420),
    (0.0005, 20, 1000, 0.05, 0.029256, 0.055281, 0.116996),
]

CASES = st.tuples(st.floats(0.001, 0.95), st.floats(0, 1e4), st.integers(20, 10**6), st.floats(1e-6, 0.5))


@pytest.mark.parametrize("case", REFERENCE)
def test_reference_values(case: tuple[float, ...]) -> None:
    risk, kl, n, delta, by_kl, by_quad, by_classic = case
    size = int(n)
    assert KL(size, delta).value(risk, kl) == pytest.approx(by_kl, abs=6e-7)
    assert Quad(size, delta).value(risk, kl) == pytest.approx(by_quad, abs=6e-7)
    assert Lambda(size, delta).value(risk, kl) == pytest.approx(by_quad, abs=6e-7)
    assert Classic(size, delta).value(risk, kl) == pytest.approx(by_classic, abs=6e-7)


@pytest.mark.parametrize("name", TABLE)
@given(case=CASES)
def test_never_below_the_risk_and_monotone(name: str, case: tuple[float, float, int, float]) -> None:
    risk, kl, n, delta = case
    bound = TABLE[name](n, delta)
    value = bound.value(risk, kl)
    assert value >= risk * (1 - 1e-12)
    assert bound.value(risk, kl + 1 + 0.1 * kl) >= value
    assert bound.value(min(1.0, risk * 1.05), kl) >= value


@pytest.mark.parametrize("name", TABLE)
def test_tends_to_the_risk_as_n_grows(name: str) -> None:
    values = [TABLE[name](n, 0.05).value(0.1, 50.0) for n in (10**3, 10**5, 10**7, 10**9)]
    assert values == sorted(values, reverse=True)
    limit = {"lambda fixed": 0.1 / 0.65, "catoni fixed": -math.expm1(-0.15) / -math.expm1(-1.5), "catoni": 0.1025}
    slack = {"subgaussian": 2e-3, "cgf_rodriguez": 2e-3}.get(name, 1e-3)
    assert values[-1] == pytest.approx(limit.get(name, 0.1), abs=slack)


@pytest.mark.parametrize("name", TABLE)
@given(case=st.tuples(st.floats(0.01, 0.5), st.floats(1, 2000), st.integers(5000, 10**5)))
def test_slopes_are_the_derivatives(name: str, case: tuple[float, float, int]) -> None:
    risk, kl, n = case
    bound = TABLE[name](n, 0.05)
    if name == "catoni":
        bound = Catoni(n, 0.05, beta=bound.best_beta(risk, kl))  # type: ignore[attr-defined]  # β is held in the slope
    slope_risk, slope_kl = bound.slopes(risk, kl)
    h = 1e-6
    in_risk = (bound.value(risk + h, kl) - bound.value(risk - h, kl)) / (2 * h)
    in_kl = (bound.value(risk, kl + 1e-3) - bound.value(risk, kl - 1e-3)) / 2e-3
    assert slope_risk == pytest.approx(in_risk, rel=1e-4)
    assert slope_kl == pytest.approx(in_kl, rel=1e-3)


@pytest.mark.parametrize("name", TABLE)
def test_the_objective_has_the_value_and_the_gradient(name: str) -> None:
    posterior = Posterior(build("mlp"), Prior(std=0.1)).double()
    with torch.no_grad():
        posterior.log_std.sub_(0.3)
    losses = torch.tensor([0.2, 0.4], dtype=torch.float64, requires_grad=True)
    bound = TABLE[name](500, 0.05)
    objective = bound(losses, posterior)
    kl = posterior.kl().item()
    assert objective.total.item() == pytest.approx(bound.value(0.3, kl))
    assert objective.total.item() == pytest.approx(objective.risk.item() + objective.complexity.item())
    objective.total.backward()
    slope_risk, slope_kl = bound.slopes(0.3, kl)
    assert losses.grad is not None
    assert losses.grad.tolist() == pytest.approx([slope_risk / 2] * 2)
    wanted = torch.autograd.grad(posterior.kl(), posterior.log_std)[0] * slope_kl
    torch.testing.assert_close(posterior.log_std.grad, wanted)
    assert objective.gamma == pytest.approx(slope_risk / slope_kl / 500)


@given(case=CASES)
def test_relations_between_bounds(case: tuple[float, float, int, float]) -> None:
    risk, kl, n, delta = case
    by_kl = KL(n, delta).value(risk, kl)
    assert by_kl <= min(Quad(n, delta).value(risk, kl), Classic(n, delta).value(risk, kl)) + 1e-9
    assert Lambda(n, delta).value(risk, kl) == pytest.approx(Quad(n, delta).value(risk, kl), rel=1e-9)
    for lam in (0.3, 1.0, 1.7):
        assert Lambda(n, delta, lam=lam).value(risk, kl) >= Quad(n, delta).value(risk, kl) * (1 - 1e-12)
