"""Every formula of `bounds/` against the same formula in 40 digits, its slopes against numerical derivatives of that."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from mpmath import mpf

from pactrain import PactrainError
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
from pactrain.bounds.eta import eta_paper
from pactrain.bounds.held_out import _stirling_error
from pactrain.bounds.kl import binary_kl, kl_bound, monte_carlo
from pactrain.bounds.prior_price import dziugaite_roy

Formula = Callable[[Any, Any, int, Any], Any]
POINTS = [(0.02, 5000.0, 50000, 0.025), (0.2, 500.0, 10000, 0.05), (0.004, 20.0, 1000, 0.3), (0.9, 3.0, 40, 0.01)]


@pytest.fixture(autouse=True)
def _forty_digits() -> None:
    mpmath.mp.dps = 40


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
    for _ in range(140):
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


def moments(k_factor: float, low: float, high: float) -> Formula:
    """risk + (ln 1/δ + KL)/(γ n) + γ K at the best γ between two ends, found on a fine grid."""

    def value(r: Any, k: Any, n: int, d: Any) -> Any:
        price = (mpmath.log(1 / mpf(d)) + k) / n
        gamma = min(max(mpmath.sqrt(price / k_factor), mpf(low)), mpf(high))
        return r + price / gamma + gamma * k_factor

    return value


TABLE: dict[str, tuple[Callable[[int, float], Bound], Formula]] = {
    "classic": (Classic, lambda r, k, n, d: r + mpmath.sqrt(cost(k, n, d) / (2 * n))),
    "quad": (
        Quad,
        lambda r, k, n, d: (mpmath.sqrt(r + cost(k, n, d) / (2 * n)) + mpmath.sqrt(cost(k, n, d) / (2 * n))) ** 2,
    ),
    "lambda fixed": (
        lambda n, d: Lambda(n, d, lam=0.7),
        lambda r, k, n, d: r / (1 - mpf(0.7) / 2) + cost(k, n, d) / (n * mpf(0.7) * (1 - mpf(0.7) / 2)),
    ),
    "lambda": (
        Lambda,
        lambda r, k, n, d: min(
            r / (1 - x / 2) + cost(k, n, d) / (n * x * (1 - x / 2))
            for x in [2 / (mpmath.sqrt(2 * n * r / cost(k, n, d) + 1) + 1)]
        ),
    ),
    "catoni fixed": (lambda n, d: Catoni(n, d, beta=1.5), catoni(1.5, lambda d: mpmath.log(1 / mpf(d)))),
    "catoni": (Catoni, best_catoni),
    "bbb": (lambda n, d: BBB(n, d, penalty=0.3), lambda r, k, n, d: r + mpf(0.3) * k / n),
    "subgaussian": (lambda n, d: SubGaussian(n, d, k=0.125), moments(0.125, 1e-3, 10)),
    "clipped below": (lambda n, d: CGF(n, d, k=0.125, gamma_min=5.0), moments(0.125, 5, 10)),
    "clipped above": (lambda n, d: CGF(n, d, k=0.125, gamma_max=0.01), moments(0.125, 1e-3, 0.01)),
    "kl": (KL, lambda r, k, n, d: inverse(r, cost(k, n, d) / n)),
}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", TABLE)
def test_values_and_slopes(name: str, point: tuple[float, float, int, float]) -> None:
    risk, kl, n, delta = point
    make, formula = TABLE[name]
    bound = make(n, delta)
    assert bound.value(risk, kl) == pytest.approx(float(formula(mpf(risk), mpf(kl), n, delta)), rel=1e-11)
    slope_risk, slope_kl = bound.slopes(risk, kl)
    h = mpf("1e-12")
    in_risk = (formula(risk + h, mpf(kl), n, delta) - formula(risk - h, mpf(kl), n, delta)) / (2 * h)
    in_kl = (formula(mpf(risk), kl + h, n, delta) - formula(mpf(risk), kl - h, n, delta)) / (2 * h)
    assert slope_risk == pytest.approx(float(in_risk), rel=1e-7)
    assert slope_kl == pytest.approx(float(in_kl), rel=1e-7)


def test_defaults() -> None:
    assert [make(7).delta for make in (KL, BBB, Catoni, Lambda, CGF)] == [0.05] * 5
    assert BBB(10).value(0.1, 5.0) == pytest.approx(0.6)
    assert (CGF(10).k, CGF(10).gamma_min, CGF(10).gamma_max) == (1.0, 1e-3, 10.0)
    assert [make(10).certifies for make in (KL, Quad, Classic, Lambda, Catoni)] == [True] * 5
    assert [make(10).certifies for make in (BBB, SubGaussian, CGF)] == [False] * 3


def test_the_grid_of_beta() -> None:
    assert pytest.approx([0.05 * math.sqrt(2) ** i for i in range(17)]) == BETAS
    bound = Catoni(1000, 0.05)
    assert bound.best_beta(0.1, 50.0) in BETAS
    assert Catoni(1000, 0.05, beta=0.3).best_beta(0.1, 50.0) == 0.3


def test_best_lambda() -> None:
    price = 30 + math.log(2 * math.sqrt(500) / 0.05)
    assert Lambda(500, 0.05).best_lambda(0.1, 30.0) == pytest.approx(2 / (math.sqrt(2 * 500 * 0.1 / price + 1) + 1))
    assert Lambda(500, 0.05, lam=0.3).best_lambda(0.1, 30.0) == 0.3


def test_a_moment_of_zero_takes_the_largest_gamma() -> None:
    assert SubGaussian(100, 0.05, k=0.0).gamma(4.0) == 10.0
    assert SubGaussian(100, 0.05, k=0.5).gamma(4.0) == pytest.approx(math.sqrt((math.log(20) + 4) / 50))


@pytest.mark.parametrize("q", [0.0, 1e-9, 0.003, 0.2, 0.5, 0.81, 0.9999, 1.0])
def test_binary_kl(q: float) -> None:
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
    assert kl_bound(0.1, 5.0, 100, 0.2) == KL(100, 0.2).value(0.1, 5.0)
    bound = KL(100, 0.05)
    assert bound.slopes(0.0, 5.0) == bound.slopes(-1.0, 5.0) == bound.slopes(1e-9, 5.0)
    assert bound.slopes(1.0, 5.0) == bound.slopes(2.0, 5.0) == bound.slopes(1 - 2e-9, 5.0)
    assert bound.slopes(1.5e-9, 5.0) != bound.slopes(0.0, 5.0)
    assert bound.slopes(1 - 3e-9, 5.0) != bound.slopes(1.0, 5.0)
    assert KL(2, 0.05).slopes(0.5, 1e4)[1] == pytest.approx(1e-9, rel=1e-6)  # the value is taken as 1 − 1e-9
    for slopes in (bound.slopes(0.0, 5.0), bound.slopes(1.0, 5.0), KL(2, 0.05).slopes(0.5, 1e4)):
        assert all(0 < slope < math.inf for slope in slopes)


def test_monte_carlo() -> None:
    assert monte_carlo(0.1, 300, 0.01) == pytest.approx(float(inverse(0.1, mpmath.log(2 / mpf(0.01)) / 300)), rel=1e-12)


def test_one_drawn_network() -> None:
    price = (20 + mpmath.log(2 * mpmath.sqrt(1000) / mpf(0.05))) / 1000
    assert disintegrated(0.1, 20.0, 1000, 0.05) == pytest.approx(float(inverse(0.1, price)), rel=1e-12)
    assert disintegrated(0.1, -50.0, 1000, 0.05) == pytest.approx(0.1, abs=1e-15)


@pytest.mark.parametrize(("errors", "n", "delta"), [(0, 1, 0.05), (3, 100, 0.05), (37, 250, 0.01), (99, 100, 0.3)])
def test_clopper_pearson(errors: int, n: int, delta: float) -> None:
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


def test_the_scale_of_dziugaite_and_roy() -> None:
    for log_std in (-3.0, -1.2, -1.16, 3.0):
        j = 100 * (mpmath.log(mpf(0.1)) - 2 * mpf(log_std))
        places = sorted({max(1, int(mpmath.floor(j))), max(1, int(mpmath.ceil(j)))})
        assert [scale for scale, _ in dziugaite_roy(log_std)] == pytest.approx(
            [float((mpmath.log(mpf(0.1)) - mpf(i) / 100) / 2) for i in places]
        )
        assert [price for _, price in dziugaite_roy(log_std)] == pytest.approx(
            [float(mpmath.log(mpf(i) ** 2 * mpmath.pi**2 / 6)) for i in places]
        )
    assert [len(dziugaite_roy(log_std)) for log_std in (-3.0, 3.0)] == [2, 1]


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


@pytest.mark.parametrize(
    ("gammas", "sizes"), [((0.5, 4.0), (0.03, 0.02)), ((3.0, 30.0), (1e-9, 1e-8)), ((0.1, 7.0), (3.0, 2.0))]
)
def test_eta_as_printed(gammas: tuple[float, float], sizes: tuple[float, float]) -> None:
    (low, high), (size, variance) = gammas, sizes
    found = eta_paper(
        groups=7, weights=900, n=400, mean_size=size, mean_variance=variance,
        largest_kl=33.0, largest_k=5.0, delta=0.04, gamma_min=low, gamma_max=high,
    )  # fmt: skip
    k, d, n, a, b, g1, g2, big_m, big_t = map(mpf, (7, 900, 400, 12, 2, low, high, size, variance))
    l1 = max(d, mpmath.exp(a) * (2 * mpmath.sqrt(d) * big_m + d * big_t)) / 2
    l2 = (2 * d * big_m**2 * mpmath.exp(2 * a) + d * (a + b) / 2) / g1**2
    big_b = (33 + mpmath.log(1 / mpf(0.04))) / (n * g1**2) + 5
    inside = 2 * ((1 / (g1 * n) + g2) * (l1 + l2) + big_b) * max(b + a, 2 * (g2 - g1)) * g1 * n / k
    assert found == pytest.approx(float(k / (g1 * n) * (1 + mpmath.log(inside))), rel=1e-13)


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
