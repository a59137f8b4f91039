"""Coverage by simulation, where the true risk is known: a bound may fail in at most δ of the data sets.

The posterior is the worst there is: all its mass on the luckiest of e^KL equally bad hypotheses, so that the divergence is
KL nats and none of them is wasted.  The luckiest of that many is drawn directly from the law of the minimum.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pactrain.bounds import (
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
)
from pactrain.bounds.kl import monte_carlo

Array = NDArray[np.float64]

SETS = 4000
N = 300
NATS = 60.0
DELTA = 0.1


def luckiest(quantile: Callable[[Array], Array], seed: int, nats: float = NATS) -> Array:
    """The smallest of e^nats independent values with this quantile function, for each of SETS data sets."""
    u = np.random.default_rng(seed).random(SETS)
    return quantile(-np.expm1(np.log1p(-u) * math.exp(-nats)))


def coin_risks(n: int, error: float, seed: int) -> Array:
    """Training error of the luckiest of e^NATS hypotheses with this true error on n examples."""
    return luckiest(lambda q: stats.binom(n, error).ppf(q) / n, seed)


def normal_risks(seed: int) -> Array:
    """Training loss of the luckiest of e^NATS hypotheses whose loss is N(1, 1)."""
    return luckiest(lambda q: stats.norm(1, 1 / math.sqrt(N)).ppf(q), seed)


def holds(values: Array, truth: float, delta: float = DELTA) -> bool:
    """Are the violations compatible with a failure probability of at most δ?"""
    violations = int((values < truth).sum())
    return bool(stats.binomtest(violations, len(values), delta, alternative="greater").pvalue > 1e-4)


GAMMAS = [0.1 * i for i in range(1, 41)]
PSI = [g * g / 2 for g in GAMMAS]  # the cumulant function of N(1, 1)

MANY = 20_000  # the quadratic bounds are tight where the error is small

COINS: dict[str, tuple[Callable[[float, float], float], int, float]] = {
    "kl": (KL(N, DELTA).value, N, 0.5),
    "classic": (Classic(N, DELTA).value, N, 0.5),
    "quad": (Quad(MANY, DELTA).value, MANY, 0.05),
    "lambda": (Lambda(MANY, DELTA).value, MANY, 0.05),
    "lambda fixed": (Lambda(MANY, DELTA, lam=0.34).value, MANY, 0.05),
    "catoni": (Catoni(N, DELTA).value, N, 0.5),
    "catoni fixed": (Catoni(N, DELTA, beta=2.0).value, N, 0.5),
    "disintegrated": (lambda risk, kl: disintegrated(risk, kl, N, DELTA), N, 0.5),
}

NORMALS: dict[str, Callable[[float, float], float]] = {
    "unbounded at a fixed γ": lambda risk, kl: risk + (math.log(1 / DELTA) + kl) / (0.6 * N) + 0.3,
    "unbounded over a grid of γ": lambda risk, kl: (
        risk + min((math.log(len(GAMMAS) / DELTA) + kl) / (g * N) + p / g for g, p in zip(GAMMAS, PSI, strict=True))
    ),
    "subgaussian": SubGaussian(N, DELTA, k=0.5).value,
    "cgf_rodriguez": CGF(N, DELTA, k=0.5).value,
    "gamma free": lambda risk, kl: gamma_free(risk, kl, N, DELTA, GAMMAS, PSI),
    "casado": lambda risk, kl: casado(risk, kl, N, DELTA, GAMMAS, PSI),
}


@pytest.mark.parametrize("name", COINS)
def test_bounds_for_bounded_losses_hold_and_break_with_half_the_divergence(name: str) -> None:
    bound, n, error = COINS[name]
    risks = coin_risks(n, error, seed=1)
    assert holds(np.array([bound(float(r), NATS) for r in risks]), error)
    assert not holds(np.array([bound(float(r), NATS / 2) for r in risks]), error)


@pytest.mark.parametrize("name", NORMALS)
def test_bounds_for_unbounded_losses_hold_and_break_with_half_the_divergence(name: str) -> None:
    risks = normal_risks(seed=2)
    assert holds(np.array([NORMALS[name](float(r), NATS) for r in risks]), 1.0)
    assert not holds(np.array([NORMALS[name](float(r), NATS / 2) for r in risks]), 1.0)


def test_every_bound_that_certifies_is_simulated() -> None:
    families = {bound.name for bound in (KL, Classic, Quad, Lambda, Catoni) if bound.certifies}
    assert families <= COINS.keys()
    assert all(issubclass(b, Bound) for b in (SubGaussian, CGF))


def test_the_monte_carlo_step_holds_for_pairs_and_for_chunks() -> None:
    g = np.random.default_rng(3)
    truth, draws = 0.07, 200
    pairs = g.binomial(draws, truth, SETS) / draws
    assert holds(np.array([monte_carlo(float(p), draws, DELTA) for p in pairs]), truth)
    chunk_means = g.beta(0.3, 0.3 * (1 - truth) / truth, (SETS, draws)).mean(axis=1)
    assert holds(np.array([monte_carlo(float(p), draws, DELTA) for p in chunk_means]), truth)
    too_many = np.array([monte_carlo(float(p), 20 * draws, DELTA) for p in pairs])
    assert not holds(too_many, truth)


def test_clopper_pearson_holds_and_is_exact() -> None:
    g = np.random.default_rng(4)
    truth, n = 0.05, 150
    errors = g.binomial(n, truth, SETS)
    table = {k: clopper_pearson(k, n, DELTA) for k in range(int(errors.max()) + 1)}
    assert holds(np.array([table[int(k)] for k in errors]), truth)
    assert not holds(np.array([table[max(0, int(k) - 2)] for k in errors]), truth)


@pytest.mark.parametrize(("rare", "scale", "n"), [(1e-4, 1.0, 10_000), (1e-6, 2.3, 50_000)])
def test_the_papers_moment_breaks_the_bound_and_the_n_fold_moment_does_not(rare: float, scale: float, n: int) -> None:
    """A prior that puts `rare` on a loss scale·Bernoulli(½) and the rest on a loss of 0; Q is the rare hypothesis."""
    gamma, delta = 0.5, 0.05
    log_moment = math.log(math.cosh(gamma * scale / 2))
    by_mean = math.log1p(rare * math.expm1(log_moment))
    n_fold = (
        math.log1p(rare * math.expm1(n * log_moment)) / n if n * log_moment < 700 else log_moment + math.log(rare) / n
    )
    price = (math.log(1 / delta) - math.log(rare)) / (gamma * n)
    risks = scale * np.random.default_rng(5).binomial(n, 0.5, SETS) / n
    truth = scale / 2
    broken = float((risks + price + by_mean / gamma < truth).mean())
    assert broken == pytest.approx(0.31 if scale == 1 else 0.43, abs=0.04)
    assert not holds(risks + price + by_mean / gamma, truth, delta)
    assert holds(risks + price + n_fold / gamma, truth, delta)
