"""What is simulated: for every formula the risks of many data sets, the truth, its values, and its values with a broken input.

The posterior is the worst there is: all its mass on the luckiest of e^KL equally bad hypotheses, so that the divergence is
KL nats and none of them is wasted.  The luckiest of that many is drawn directly from the law of the minimum.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from pactrain.bounds import CGF, KL, Catoni, Classic, Lambda, Quad, ScalarBound, SubGaussian, Unbounded
from pactrain.bounds.bernstein import bernstein_bound
from pactrain.bounds.betting import Histogram, mean_bound
from pactrain.bounds.held_out import clopper_pearson
from pactrain.bounds.kl import kl_bound, kl_inverse
from pactrain.bounds.moment import Moment
from pactrain.bounds.moments import ConstantMoment, casado, gamma_free
from pactrain.bounds.progressive import progressive_bound
from pactrain.bounds.recursive import Level, recursive_bound
from pactrain.bounds.single_draw import disintegrated
from pactrain.certification.statement import FORMULAS
from pactrain.certification.unbounded_loss import GAMMA_GRID

Array = NDArray[np.float64]
Value = Callable[[float], float]

SETS = 4000
N = 300
MANY = 20_000  # the quadratic bounds are tight where the error is small
NATS = 60.0
DELTA = 0.1


# -- worlds ------------------------------------------------------------------------------------------------------------


def luckiest(quantile: Callable[[Array], Array], seed: int) -> Array:
    """The smallest of e^NATS independent values with this quantile function, for each of SETS data sets."""
    u = np.random.default_rng(seed).random(SETS)
    return quantile(-np.expm1(np.log1p(-u) * math.exp(-NATS)))


def coins(n: int = N, error: float = 0.5) -> Array:
    """Training error of the luckiest of e^NATS hypotheses with this true error on n examples."""
    return luckiest(lambda q: stats.binom(n, error).ppf(q) / n, seed=1)


def measured(draws: int) -> Array:
    """The error of `coins` as that many draws of the weights and of an example find it."""
    return np.random.default_rng(2).binomial(draws, coins()) / draws


def normals() -> Array:
    """Training loss of the luckiest of e^NATS hypotheses whose loss is N(1, 1)."""
    return luckiest(lambda q: stats.norm(1, 1 / math.sqrt(N)).ppf(q), seed=3)


def held_out(n: int, error: float) -> Array:
    """Share of errors of one predictor on n examples that it was not trained on."""
    return np.random.default_rng(4).binomial(n, error, SETS) / n


def of_normals(gammas: Array) -> Moment:
    """What a scan would find if every hypothesis of the prior has the loss N(1, 1), at two stds: ψ(γ) = γ²/2."""
    return moment(gammas, np.tile(gammas**2 / 2, (2, 3, 1)), N)


def moment(gammas: Array, log_moments: Array, n: int) -> Moment:
    flat = np.ones(log_moments.shape[:2])
    stds = np.arange(-1.0, len(log_moments) - 1)
    none = np.zeros((len(log_moments), len(gammas)))
    return Moment(stds, gammas, log_moments, flat, flat, none, np.zeros((*flat.shape, 2)), n, n, flat.size)


GAMMAS: Array = np.linspace(0.1, 4.0, 40)
PSI = of_normals(GAMMAS).psi("mfold")[0].tolist()


def unbounded(risk: float, kl: float, bound: Unbounded) -> float:
    return bound.terms(risk, kl, torch.tensor([-0.5])).total


def best_gamma(risk: float, kl: float, form: str) -> float:
    """As in a certificate: the best γ of its grid, which is paid for, with K or ψ over that grid."""
    psi = of_normals(GAMMA_GRID).psi("mfold")[0]
    k = float((psi / GAMMA_GRID**2).max())
    terms = [p / g if form == "cgf" else g * k for g, p in zip(GAMMA_GRID, psi, strict=True)]
    shared = {"risk": risk, "kl": kl / 2, "prior_nats": kl / 2 + math.log(len(GAMMA_GRID))}
    nats = {"confidence_nats": math.log(1 / DELTA), "n": N}
    formula = FORMULAS[f"unbounded ({form})"]
    return min(formula(**shared, **nats, gamma=g, complexity=c) for g, c in zip(GAMMA_GRID, terms, strict=True))


# -- what is simulated -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulation:
    """Something of the product, the risks that it is given, the truth, its values, and its values with a broken input."""

    of: str
    risks: Callable[[], Array]
    truth: float
    value: Value
    broken: Value


def divergence(of: str, risks: Callable[[], Array], truth: float, value: Callable[[float, float], float]) -> Simulation:
    """A bound of risk and divergence, broken by half of the divergence."""
    return Simulation(of, risks, truth, lambda r: value(r, NATS), lambda r: value(r, NATS / 2))


def coin(bound: ScalarBound, error: float = 0.5) -> Simulation:
    return divergence(name_of(type(bound)), partial(coins, bound.n, error), error, bound.value)


def normal(of: str, value: Callable[[float, float], float]) -> Simulation:
    return divergence(of, normals, 1.0, value)


def name_of(thing: Callable[..., object]) -> str:
    """Module and name, as in the catalogue."""
    return f"{thing.__module__.rpartition('.')[2]}.{thing.__name__}"


def formula(name: str, **inputs: float) -> Callable[..., float]:
    return partial(FORMULAS[name], **inputs)


DRAWS = 100_000
SPLIT = {"delta_draws": 0.2 * DELTA, "delta_bound": 0.8 * DELTA}
BERNSTEIN: dict[str, Any] = {"limit": 3.0, "u": 0.35}


def coin_counts(mean: float, draws: int) -> str:
    """The histogram of that many zeros and ones."""
    ones = round(mean * draws)
    return " ".join(f"{i}:{count}" for i, count in ((0, draws - ones), (1, ones)) if count)


def stated(bound: str, *, mean: float, draws: int = DRAWS, claimed: int = 1, n: int = N, **inputs: Any) -> float:
    """A statement about zeros and ones that were measured; `claimed`: how often each draw is counted."""
    counts = coin_counts(mean, claimed * draws)
    shared = {"bins": 1, "values": claimed * draws, "n": n, "choices": 1, **SPLIT}
    return FORMULAS[bound](counts=counts, **shared, **inputs)


STATED_KL = partial(stated, "kl", scale=1.0)
STATED_BERNSTEIN = partial(stated, "bernstein", n=MANY, **BERNSTEIN)
STATED_DRAW = formula("disintegrated", n=N, delta_bound=DELTA)
IN_GRID = Unbounded(N, DELTA, moment=of_normals(GAMMAS), nats=math.log(len(GAMMAS) / DELTA))
ONE_GAMMA = Unbounded(N, DELTA, moment=of_normals(GAMMAS), gamma_min=0.6, gamma_max=0.6)
BY_LARGEST = Unbounded(N, DELTA, moment=of_normals(GAMMAS), average="max", gamma_min=0.6, gamma_max=0.6)
BY_K = Unbounded(N, DELTA, moment=of_normals(GAMMAS), mode="paper")  # γ follows from the divergence, here a constant


def two_levels(risk: float, kl: float, *, first: float = 0.5) -> float:
    """A recursive bound: the networks before are e^NATS equally bad ones, which answer independently, and the luckiest of them on half
    of the examples is judged by that half: F_1, F_2 and F_3 follow from its error there."""
    found = [coin_counts(x, 10**8) for x in (1 - 0.5 * (1 - risk), risk, 0.5 * risk)]
    levels = [Level(2 * N, 0.0, 0.0, 1e8, 1, (coin_counts(first, 10**8),)), Level(N, kl, 0.0, 1e8, 1, tuple(found))]
    return FORMULAS["recursive"](levels=" / ".join(level.text for level in levels), parts=2, n=2 * N, **SPLIT)


SIMULATIONS: dict[str, Simulation] = {
    "kl": coin(KL(N, DELTA)),
    "classic": coin(Classic(N, DELTA)),
    "quad": coin(Quad(MANY, DELTA), 0.05),
    "lambda": coin(Lambda(MANY, DELTA), 0.05),
    "lambda fixed": coin(Lambda(MANY, DELTA, lam=0.34), 0.05),
    "catoni": coin(Catoni(N, DELTA)),
    "catoni fixed": coin(Catoni(N, DELTA, beta=2.0)),
    "kl as a function": divergence("kl.kl_bound", coins, 0.5, lambda r, kl: kl_bound(r, kl, N, DELTA)),
    "disintegrated": divergence(
        "single_draw.disintegrated", coins, 0.5, lambda r, kl: disintegrated(r, kl, N, DELTA)
    ),
    "constant moment": normal("moments.ConstantMoment", ConstantMoment(N, DELTA, k=0.5).value),
    "subgaussian": normal("moments.SubGaussian", SubGaussian(N, DELTA, k=0.5).value),
    "cgf": normal("moments.CGF", CGF(N, DELTA, k=0.5).value),
    "γ-free": normal("moments.gamma_free", lambda r, kl: gamma_free(r, kl, N, DELTA, GAMMAS.tolist(), PSI)),
    "casado": normal("moments.casado", lambda r, kl: casado(r, kl, N, DELTA, GAMMAS.tolist(), PSI)),
    "unbounded over a grid of γ": normal("unbounded.Unbounded", partial(unbounded, bound=IN_GRID)),
    "unbounded at a fixed γ": normal("unbounded.Unbounded", partial(unbounded, bound=ONE_GAMMA)),
    "unbounded with the largest moment": normal("unbounded.Unbounded", partial(unbounded, bound=BY_LARGEST)),
    "unbounded with K": normal("unbounded.Unbounded", partial(unbounded, bound=BY_K)),
    "inverse of kl": Simulation(
        "kl.kl_inverse", partial(held_out, N, 0.5), 0.5,
        lambda r: kl_inverse(r, math.log(1 / DELTA) / N), lambda r: kl_inverse(r, math.log(1 / DELTA) / (4 * N)),
    ),
    "draws": Simulation(
        "betting.mean_bound", partial(held_out, 200, 0.07), 0.07,
        lambda r: mean_bound(Histogram.read(1, coin_counts(r, 200)), DELTA),
        lambda r: mean_bound(Histogram.read(1, coin_counts(r, 20 * 200)), DELTA),
    ),
    "unexpected Bernstein": divergence(
        "bernstein.bernstein_bound", partial(coins, MANY, 0.05), 0.15,
        lambda r, kl: bernstein_bound(r, kl, MANY, DELTA, **BERNSTEIN),
    ),
    "test set": Simulation(
        "held_out.clopper_pearson", partial(held_out, 150, 0.05), 0.05,
        lambda r: clopper_pearson(round(150 * r), 150, DELTA), lambda r: clopper_pearson(max(0, round(150 * r) - 2), 150, DELTA),
    ),
    "stated kl": divergence(
        "statement: kl", partial(measured, DRAWS), 0.5, lambda r, kl: STATED_KL(mean=r, kl=kl / 2, prior_nats=kl / 2)
    ),
    "stated kl of a loss up to 3": divergence(
        "statement: kl", partial(measured, DRAWS), 1.5, lambda r, kl: STATED_KL(mean=r, kl=kl, prior_nats=0.0, scale=3.0)
    ),
    "stated kl, unpaid prior": Simulation(
        "statement: kl", partial(measured, DRAWS), 0.5,
        lambda r: STATED_KL(mean=r, kl=NATS / 2, prior_nats=NATS / 2), lambda r: STATED_KL(mean=r, kl=NATS / 2, prior_nats=0.0),
    ),
    "stated kl, unpaid draws": Simulation(
        "statement: kl", partial(measured, 50), 0.5,
        lambda r: STATED_KL(mean=r, draws=50, kl=NATS, prior_nats=0.0),
        lambda r: STATED_KL(mean=r, draws=50, claimed=2000, kl=NATS, prior_nats=0.0),
    ),
    "stated cross-entropy": divergence(
        "statement: bernstein", partial(coins, MANY, 0.05), 0.15,
        lambda r, kl: STATED_BERNSTEIN(mean=r, draws=10**8, kl=kl / 2, prior_nats=kl / 2),
    ),
    "stated draw": divergence(
        "statement: disintegrated", coins, 0.5, lambda r, kl: STATED_DRAW(risk=r, log_ratio=kl / 2, prior_nats=kl / 2)
    ),
    "stated draw, without the ratio": Simulation(
        "statement: disintegrated", coins, 0.5,
        lambda r: STATED_DRAW(risk=r, log_ratio=NATS, prior_nats=0.0), lambda r: STATED_DRAW(risk=r, log_ratio=0.0, prior_nats=0.0),
    ),
    "stated test set": Simulation(
        "statement: test set", partial(held_out, 150, 0.05), 0.05,
        lambda r: FORMULAS["test set"](errors=round(150 * r), n=150, delta_bound=DELTA),
        lambda r: FORMULAS["test set"](errors=max(0, round(150 * r) - 2), n=150, delta_bound=DELTA),
    ),
    "stated counted rows": Simulation(
        "statement: counted rows", partial(held_out, 150, 0.05), 0.05,
        lambda r: FORMULAS["counted rows"](errors=round(150 * r), n=150, delta_bound=DELTA),
        lambda r: FORMULAS["counted rows"](errors=max(0, round(150 * r) - 2), n=150, delta_bound=DELTA),
    ),
    "judged before training": Simulation(
        "progressive.progressive_bound", partial(held_out, 150, 0.05), 0.05,
        lambda r: progressive_bound([(30, 1), (150, round(150 * r))], DELTA),
        lambda r: progressive_bound([(30, 1), (3000, round(3000 * r))], DELTA),
    ),
    "stated progressive": Simulation(
        "statement: progressive", partial(held_out, 150, 0.05), 0.05,
        lambda r: FORMULAS["progressive"](blocks=f"30:1 150:{round(150 * r)}", n=150, delta_bound=DELTA),
        lambda r: FORMULAS["progressive"](blocks=f"30:1 150:{round(75 * r)}", n=150, delta_bound=DELTA),
    ),
    "recursive, one level": divergence(
        "recursive.recursive_bound", coins, 0.5,
        lambda r, kl: recursive_bound([Level(N, kl, 0.0, 1e8, 1, (coin_counts(r, 10**8),))], 1, 1e-9, DELTA),
    ),
    "recursive, unpaid divergence": Simulation(
        "statement: recursive", coins, 0.5, lambda r: two_levels(r, NATS), lambda r: two_levels(r, 0.0)
    ),
    "recursive, networks before forgotten": Simulation(
        "statement: recursive", coins, 0.5, lambda r: two_levels(r, NATS), lambda r: two_levels(r, NATS, first=0.0)
    ),
    "stated loss, cgf": normal("statement: unbounded (cgf)", partial(best_gamma, form="cgf")),
    "stated loss, paper": normal("statement: unbounded (paper)", partial(best_gamma, form="paper")),
}  # fmt: skip


def holds(values: Array, truth: float, delta: float = DELTA) -> bool:
    """True if the violations are compatible with a failure probability of at most δ."""
    violations = int((values < truth).sum())
    return bool(stats.binomtest(violations, len(values), delta, alternative="greater").pvalue > 1e-4)


def at(risks: Array, value: Value) -> Array:
    """The value at each risk, computed once for each that differs."""
    different, where = np.unique(risks, return_inverse=True)
    return np.array([value(float(r)) for r in different])[where]
