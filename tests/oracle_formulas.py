"""The formulas of docs/certificates.md, written from that page in float64 and mpmath.  Nothing of pactrain is imported."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

GAMMAS: Array = np.geomspace(0.5, 2000.0, 40)
"""γ from which the unbounded statements take the best, at ln 40 nats."""

CLIPPED = math.log(1e4)
"""Largest cross-entropy after clipping at a probability of 10⁻⁴."""

UNTAKEN = -math.log(0.99)
"""Price in nats of not having taken units."""


def price_of_units(chosen: int) -> float:
    """Price in nats of having chosen so many units."""
    return chosen * math.log(19) + math.log(400)


# -- values ------------------------------------------------------------------------------------------------------------


def kl_inverse(q: float, c: float) -> float:
    """The largest p in [q, 1] with kl(q‖p) ≤ c, by bisection with 40 digits."""
    with mpmath.workdps(40):
        exact, target, low, high = mpmath.mpf(q), mpmath.mpf(c), mpmath.mpf(q), mpmath.mpf(1)
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if _binary_kl(exact, middle) <= target else (low, middle)
        return float(high)


def _binary_kl(q: Any, p: Any) -> Any:
    if p == 1:
        return mpmath.inf if q < 1 else mpmath.mpf(0)
    left = q * mpmath.log(q / p) if q > 0 else mpmath.mpf(0)
    return left + ((1 - q) * mpmath.log((1 - q) / (1 - p)) if q < 1 else mpmath.mpf(0))


def _kl(i: Mapping[str, float]) -> float:
    risk = kl_inverse(i["mean"], math.log(2 / i["delta_draws"]) / i["values"])
    nats = i["kl"] + i["prior_nats"] + math.log(2 * math.sqrt(i["n"]) / i["delta_bound"])
    return i["scale"] * kl_inverse(risk, nats / i["n"])


def _disintegrated(i: Mapping[str, float]) -> float:
    nats = i["log_ratio"] + i["prior_nats"] + math.log(2 * math.sqrt(i["n"]) / i["delta_bound"])
    return kl_inverse(i["risk"], max(0.0, nats) / i["n"])


def _test_set(i: Mapping[str, float]) -> float:
    if i["errors"] == i["n"]:
        return 1.0
    return float(stats.beta.ppf(1 - i["delta_bound"], i["errors"] + 1, i["n"] - i["errors"]))


def _unbounded(i: Mapping[str, float]) -> float:
    return i["risk"] + (i["kl"] + i["prior_nats"] + i["confidence_nats"]) / (i["gamma"] * i["n"]) + i["complexity"]


def _objective(i: Mapping[str, float]) -> float:
    return i["risk"] + i["kl_term"] + i["complexity"]


def _objective_eta(i: Mapping[str, float]) -> float:
    a, b, d, n, low, high = 12.0, 2.0, i["weights"], i["n"], i["gamma_min"], i["gamma_max"]
    size, variance = i["mean_size"], i["mean_variance"]
    l1 = max(d, math.exp(a) * (2 * math.sqrt(d) * size + d * variance)) / 2
    l2 = (2 * d * size**2 * math.exp(2 * a) + d * (a + b) / 2) / low**2
    c = 1 / (low * n) + high
    big = (i["largest_kl"] + math.log(1 / i["delta"])) / (n * low**2) + i["largest_k"]
    spread = max(a + b, 2 * (high - low))
    inside = 2 * (c * (l1 + l2) + big) * spread * low * n / i["groups"]
    return i["objective"] + i["groups"] / (low * n) * (1 + math.log(inside))


VALUES: dict[str, Callable[[Mapping[str, float]], float]] = {
    "kl": _kl,
    "disintegrated": _disintegrated,
    "test set": _test_set,
    "unbounded (cgf)": _unbounded,
    "unbounded (paper)": _unbounded,
    "training objective": _objective,
    "training objective + η": _objective_eta,
}


# -- Gaussians; one entry for each weight ------------------------------------------------------------------------------


def kl_terms(shift: Array, log_std: Array, prior_log_std: Array) -> Array:
    """KL of each weight: ½ (s²/p² − 1) − ln(s/p) + ½ (shift/p)²."""
    u = log_std - prior_log_std
    return np.asarray(0.5 * np.expm1(2 * u) - u + 0.5 * (shift * np.exp(-prior_log_std)) ** 2)


def log_ratio(shift: Array, log_std: Array, prior_log_std: Array, noise: Array) -> float:
    """ln dQ/dP at mean + std·noise, as a difference of two Gaussian log-densities."""
    at = shift + np.exp(log_std) * noise
    posterior = stats.norm.logpdf(at, loc=shift, scale=np.exp(log_std))
    return float(np.sum(posterior - stats.norm.logpdf(at, loc=0.0, scale=np.exp(prior_log_std))))


# -- a learned prior, rounded and paid for -----------------------------------------------------------------------------

KLOfGroup = Callable[[int, float], float]
"""KL of one group at a prior log-std."""


def on_grid(log_stds: Array) -> tuple[Array, float]:
    """The nearest of −6, −5.995, …, 1 for each group; ln 1401 nats for each."""
    rounded = np.round((np.clip(log_stds, -6, 1) + 6) / 0.005) * 0.005 - 6
    return rounded, len(log_stds) * math.log(1401)


def dziugaite_roy(log_stds: Array, kl: KLOfGroup) -> tuple[Array, float]:
    """Variances 0.1·e^(−j/100): for each group the neighbour that is cheaper, its KL and its price together."""
    chosen, price = [], 0.0
    for group, log_std in enumerate(log_stds):
        j = 100 * (math.log(0.1) - 2 * log_std)
        ways = {max(1, math.floor(j)), max(1, math.ceil(j))}
        total, nats, value = min(
            (kl(group, at) + cost, cost, at)
            for at, cost in ((0.5 * math.log(0.1) - i / 200, 2 * math.log(i) + math.log(math.pi**2 / 6)) for i in ways)
        )
        assert math.isfinite(total)
        chosen.append(value)
        price += nats
    return np.array(chosen), price


# -- the moment of the unbounded loss ----------------------------------------------------------------------------------


def log_moments(losses: Array, gammas: Array = GAMMAS) -> tuple[Array, Array]:
    """ln mean exp(γ(mean − x)) for each γ from the losses x of one network, and its standard error."""
    exponents = np.outer(gammas, losses.mean() - losses)
    top = exponents.max(1)
    scaled = np.exp(exponents - top[:, None])
    return np.log(scaled.mean(1)) + top, scaled.std(1) / scaled.mean(1) / math.sqrt(len(losses))


def n_fold(table: Array, n: float) -> Array:
    """(1/n) ln mean over draws of exp(n·logM), not below zero; draws in front.  n = 1 is the paper's definition."""
    top = (n * table).max(0)
    return np.asarray(np.maximum(0.0, (np.log(np.exp(n * table - top).mean(0)) + top) / n))


def best_gamma(nats: float, n: int, psi: Array, form: str) -> tuple[float, float]:
    """γ of the grid at which (nats/n)/γ + complexity is smallest, and the complexity there."""
    largest = (psi / GAMMAS**2).max()
    complexity = psi / GAMMAS if form == "cgf" else GAMMAS * largest
    at = int((nats / (GAMMAS * n) + complexity).argmin())
    return float(GAMMAS[at]), float(complexity[at])
