"""The formulas of docs/record.md, written from that page in float64 and mpmath.  Nothing of pactrain is imported."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

Array = NDArray[np.float64]

GAMMAS: Array = np.geomspace(0.5, 2000.0, 40)
"""γ from which the unbounded statements take the best, at ln 40 nats."""

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


def xi(n: float) -> float:
    """Σ_k C(n, k) (k/n)^k (1 − k/n)^(n − k)."""
    k = np.arange(1, int(n))
    logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * np.log(k / n) + (n - k) * np.log1p(-k / n)
    return 2 + math.fsum(np.exp(logs))


def counted(text: str) -> dict[int, int]:
    """A histogram from its text."""
    pairs = (part.split(":") for part in text.split(" "))
    return {int(i): int(count) for i, count in pairs}


def measured_mean(i: Mapping[str, Any]) -> float:
    """Mean of what was measured, with chunks weighted by their sizes."""
    return float(sum(at * count for at, count in counted(i["counts"]).items()) / i["bins"] / i["values"])


def _risk(i: Mapping[str, Any]) -> float:
    """What the measured values allow the mean to be: Chernoff's bound for zeros and ones, otherwise a bet with 15 stakes."""
    counts, delta = counted(i["counts"]), i["delta_draws"] / i["choices"]
    number, values = sum(counts.values()), np.array(list(counts)) / i["bins"]
    if i["bins"] == 1:
        bound = kl_inverse(counts.get(1, 0) / number, math.log(1 / delta) / number)
    else:
        stakes, times = 1 / (1 + np.exp(0.75 * np.arange(15) - 4)), np.array(list(counts.values()))

        def wealth(m: float) -> float:
            logs = np.log1p(-np.outer(stakes, values - m) / (1 - m)) @ times
            return float(logsumexp(logs) - math.log(15) + math.log(delta))

        mean = float(values @ times) / number
        bound = 1.0 if wealth(1 - 1e-12) < 0 else float(brentq(wealth, mean, 1 - 1e-12, xtol=1e-15, rtol=1e-13))
    return min(1.0, float(bound * number / i["values"]))


def _kl(i: Mapping[str, Any], *, exactly: bool = False) -> float:
    nats = i["kl"] + i["prior_nats"] + math.log(xi(i["n"]) * i["choices"] / i["delta_bound"])
    return float(i["scale"] * kl_inverse(min(1.0, measured_mean(i)) if exactly else _risk(i), nats / i["n"]))


def _bernstein(i: Mapping[str, Any], *, exactly: bool = False) -> float:
    eta, b = i["u"] / i["limit"], i["limit"]
    largest = b + (-math.log(1 - eta * b) - eta * b) / (eta * b * b) * b * b  # of X + κ X²
    nats = i["kl"] + i["prior_nats"] + math.log(i["choices"] / i["delta_bound"])
    return float(largest * (measured_mean(i) if exactly else _risk(i)) + nats / (eta * i["n"]))


def _disintegrated(i: Mapping[str, float]) -> float:
    nats = i["log_ratio"] + i["prior_nats"] + math.log(xi(i["n"]) / i["delta_bound"])
    return kl_inverse(i["risk"], max(0.0, nats) / i["n"])


def _test_set(i: Mapping[str, float]) -> float:
    if i["errors"] == i["n"]:
        return 1.0
    return float(stats.beta.ppf(1 - i["delta_bound"], i["errors"] + 1, i["n"] - i["errors"]))


def _progressive(i: Mapping[str, Any]) -> float:
    """The largest p at which the supermartingale of the counted blocks, at the first block's λ, is still below 1/δ."""
    blocks = [tuple(map(int, part.split(":"))) for part in i["blocks"].split(" ")]
    rate = math.sqrt(2 * math.log(1 / i["delta_bound"]) / (3 * (blocks[0][1] + 1)))
    n, errors = np.sum(blocks[1:], axis=0)

    def excess(p: float) -> float:
        return float(-rate * errors - n * math.log(1 - p * (1 - math.exp(-rate))) - math.log(1 / i["delta_bound"]))

    return 1.0 if excess(1.0) <= 0 else float(brentq(excess, 0.0, 1.0, xtol=1e-15))


def _recursive(i: Mapping[str, Any]) -> float:
    """B_t = E_t + B_(t−1)/2 from the levels' histograms; the weights of F_1, F_2 and F_3 are the steps from −1/2 to 0, 1/2 and 1."""
    bound = math.nan
    for text in i["levels"].split(" / "):
        n, kl, nats, values, bins, *histograms = text.split(";")
        share = i["parts"] * len(histograms)
        measured = {"bins": int(bins), "values": float(values), "delta_draws": i["delta_draws"], "choices": share}
        cost = (float(kl) + float(nats) + math.log(share * xi(int(n)) / i["delta_bound"])) / int(n)
        found = [kl_inverse(_risk(measured | {"counts": counts}), cost) for counts in histograms]
        excess = -0.5 + 0.5 * found[0] + (0.5 * found[1] + 0.5 * found[2] if len(found) > 1 else math.nan)
        bound = found[0] if len(found) == 1 else excess + 0.5 * bound
        bound = min(1.0, max(0.0, bound))
    return bound


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


VALUES: dict[str, Callable[..., float]] = {
    "kl": _kl,
    "bernstein": _bernstein,
    "disintegrated": _disintegrated,
    "counted rows": _test_set,
    "test set": _test_set,
    "progressive": _progressive,
    "recursive": _recursive,
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

KLAt = Callable[[Array], float]
"""KL at the prior log-stds of the groups."""


def dyadic(log_stds: Array, inputs: Array, kl: KLAt) -> tuple[Array, float]:
    """Steps of 2^−r from −½ ln(inputs), by the r of 0 … 12 that is cheapest, KL and price together."""
    ways = []
    for r in range(13):
        centre = -0.5 * np.log(inputs)
        k = np.round((log_stds - centre) * 2.0**r)
        at = centre + k / 2.0**r
        weights = 2.0**-r * np.tanh(np.pi * 2.0**r) / np.pi / (1 + (k / 2.0**r) ** 2)
        price = float(math.log(13) - np.log(weights).sum())
        ways.append((kl(at) + price, price, at))
    _, price, at = min(ways, key=lambda way: way[0])
    return at, price


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
