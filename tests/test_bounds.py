"""One table that every bound for losses in [0, 1] enters: known values, monotone, limits, slopes."""

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pactrain import PactrainError, Posterior, Prior
from pactrain.bounds import (
    BBB,
    CGF,
    KL,
    Bound,
    Catoni,
    Classic,
    Lambda,
    Quad,
    SubGaussian,
    casado,
    clopper_pearson,
    disintegrated,
    gamma_free,
    kl_inverse,
)
from pactrain.bounds.catoni import BETAS
from pactrain.bounds.kl import binary_kl
from pactrain.bounds.prior_price import dziugaite_roy
from tests.zoo import build

TABLE: dict[str, Callable[[int, float], Bound]] = {
    "kl": KL,
    "classic": Classic,
    "quad": Quad,
    "lambda": Lambda,
    "lambda fixed": lambda n, d: Lambda(n, d, lam=1.0),
    "catoni": Catoni,
    "catoni fixed": lambda n, d: Catoni(n, d, beta=1.5),
    "bbb": BBB,
    "subgaussian": lambda n, d: SubGaussian(n, d, k=0.125),
    "cgf_rodriguez": lambda n, d: CGF(n, d, k=0.125),
}

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
    limit = {"lambda fixed": 0.2, "catoni fixed": -math.expm1(-0.15) / -math.expm1(-1.5), "catoni": 0.1025}
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


def test_catoni_over_all_beta_is_the_inverse_kl() -> None:
    risk, n, delta, kl = 0.1, 2000, 0.05, 60.0
    price = kl + math.log(2 * math.sqrt(n) / delta)
    as_catoni = [
        Catoni(n, 0.5, beta=0.01 * i).value(risk, price - math.log(2)) for i in range(1, 1000)
    ]  # ln 1/δ = ln 2 is added again by the bound, so that its right-hand side is R/n
    assert min(as_catoni) == pytest.approx(KL(n, delta).value(risk, kl), rel=1e-6)


def test_quad_is_not_always_below_mcallester() -> None:
    assert Quad(10000, 0.05).value(0.2, 500) > Classic(10000, 0.05).value(0.2, 500)
    assert Quad(1000, 0.05).value(0.0005, 20) < Classic(1000, 0.05).value(0.0005, 20)


@pytest.mark.parametrize("q", [0.0, 1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9])
def test_kl_inverse_against_sixty_digits(q: float) -> None:
    mpmath.mp.dps = 80
    for exponent in range(-40, 8):
        c = 10 ** (exponent / 4)
        true = exact_inverse(q, c)
        got = kl_inverse(q, c)
        assert mpmath.mpf(got) >= true, (q, c)
        assert mpmath.mpf(got) - true <= mpmath.mpf("1e-12"), (q, c)


def exact_inverse(q: float, c: float) -> mpmath.mpf:
    """kl⁻¹ by bisection in 80-digit arithmetic."""
    wide_q, wide_c = mpmath.mpf(q), mpmath.mpf(c)
    if q == 0:
        return 1 - mpmath.exp(-wide_c)
    low, high = wide_q, mpmath.mpf(1)
    for _ in range(190):
        middle = (low + high) / 2
        divergence = wide_q * mpmath.log(wide_q / middle) + (1 - wide_q) * mpmath.log((1 - wide_q) / (1 - middle))
        low, high = (middle, high) if divergence <= wide_c else (low, middle)
    return low


@given(st.floats(1e-9, 1 - 1e-9), st.floats(1e-9, 1 - 1e-9))
def test_binary_kl_to_relative_precision(q: float, p: float) -> None:
    mpmath.mp.dps = 80
    wq, wp = mpmath.mpf(q), mpmath.mpf(p)
    true = wq * mpmath.log(wq / wp) + (1 - wq) * mpmath.log((1 - wq) / (1 - wp))
    assert binary_kl(q, p) == pytest.approx(float(true), rel=3e-14, abs=1e-300)


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


def test_prices_of_a_learned_prior_scale() -> None:
    log_std = 0.5 * math.log(0.1 * math.exp(-3.456))
    (below, price_a), (above, price_b) = dziugaite_roy(log_std)
    assert above < log_std < below
    assert price_a == pytest.approx(2 * math.log(345) + math.log(math.pi**2 / 6))
    assert price_b == pytest.approx(2 * math.log(346) + math.log(math.pi**2 / 6))
    assert dziugaite_roy(3.0) == [(0.5 * (math.log(0.1) - 0.01), math.log(math.pi**2 / 6))]


def test_other_formulas() -> None:
    gammas, psi = [0.5, 1.0, 2.0], [0.02, 0.08, 0.32]
    s = (8 + math.log(math.pi**2 * 64 / (6 * 0.05))) / 1000
    assert gamma_free(0.3, 7.2, 1000, 0.05, gammas, psi) == pytest.approx(
        0.3 + min((s + p) / g for g, p in zip(gammas, psi, strict=True))
    )
    s = (7.2 + math.log(1000 / 0.05)) / 999
    assert casado(0.3, 7.2, 1000, 0.05, gammas, psi) == pytest.approx(
        0.3 + min((s + p) / g for g, p in zip(gammas, psi, strict=True))
    )
    assert BBB(1000, penalty=0.1).value(0.3, 20.0) == pytest.approx(0.302)
    by_beta = [(1 - math.exp(-b * 0.1 - (20 + math.log(17 / 0.05)) / 1000)) / (1 - math.exp(-b)) for b in BETAS]
    assert Catoni(1000, 0.05).value(0.1, 20.0) == pytest.approx(min(by_beta))  # each of the 17 β is paid for
    for constant in (SubGaussian, CGF):
        best = constant(1000, 0.05, k=0.125).value(0.3, 20.0)
        assert best == pytest.approx(0.3 + 2 * math.sqrt(0.125 * (20 + math.log(20)) / 1000))
    one = disintegrated(0.1, 20.0, 1000, 0.05)
    assert one == pytest.approx(KL(1000, 0.05).value(0.1, 20.0))
    assert disintegrated(0.1, -1e9, 1000, 0.05) == pytest.approx(0.1, abs=1e-9)


def test_arguments_are_checked() -> None:
    for make in (lambda: KL(0), lambda: Quad(5, 0.0), lambda: Lambda(5, lam=2.0), lambda: Catoni(5, beta=0.0)):
        with pytest.raises(PactrainError):
            make()
