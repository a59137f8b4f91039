"""The moment K of a network's prior: one run for each std, put together into one table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pactrain.bounds.moment import Array, Moment, log_grid
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.distributions.random_weights import mean_abs
from pactrain.experiments.images import CLASSES, digest_of, images_of
from pactrain.experiments.plan import Run
from pactrain.models.image import image_model
from pactrain.rules.presets import AUTO
from pactrain.scan.estimate import estimate_moment

GAMMAS = (0.01, 10.0, 40)
"""Lowest and highest γ and their number: the paper's γ2, and a γ1 small enough to stand for zero."""

GAMMA1 = 0.5


@dataclass(frozen=True)
class Scan:
    """What is scanned: log-stds from `low` to `high`."""

    network: str
    data: str
    images: int
    draws: int
    low: float = -6.0
    high: float = -2.0
    points: int = 13
    seed: int = 0

    @property
    def log_stds(self) -> list[float]:
        """The grid."""
        return [float(v) for v in np.linspace(self.low, self.high, self.points)]

    def plan(self) -> list[Run]:
        """One run per std."""
        same = {"network": self.network, "data": self.data, "images": self.images, "draws": self.draws}
        digest = digest_of(self.data)
        return [
            Run(f"{__name__}:at_std", same | {"log_std": v}, self.seed, digest, kind=f"scan {self.network}")
            for v in self.log_stds
        ]


def at_std(*, seed: int, network: str, data: str, images: int, draws: int, log_std: float) -> dict[str, Any]:
    """The moment at one std; the draws' noise is the same at all of them."""
    training, _ = images_of(data, images, 1, seed)
    model = image_model(network, training[0][0].numel(), CLASSES[data], seed=seed)
    posterior = Posterior(model, Prior(per="model"))
    found = estimate_moment(
        posterior, training, gammas=log_grid(*GAMMAS), log_stds=[log_std], draws=draws, max_examples=images, seed=seed
    )
    return found.to_dict() | {"mean_abs": mean_abs(posterior.prior_mean)}


@dataclass(frozen=True)
class Ks:
    """K by std and γ1, and the constants that the other bounds need."""

    stds: Array
    gammas: Array  # γ1
    k: Array  # [std, γ1]
    k_same_std: dict[str, Array]  # of the other bounds, with the prior's std known
    lemma: Array
    knee: float
    mean_abs: float

    @property
    def planes(self) -> dict[str, float]:
        """One number for all stds of the scan has to be that of the largest."""
        return {name: float(values[-1]) for name, values in self.k_same_std.items()}

    def near(self, std: float) -> dict[str, float]:
        """Ours, the lemma's and the others' at the scanned std nearest to this one, with the paper's γ1."""
        at = int(np.abs(np.log(self.stds / std)).argmin())
        first = int(np.abs(np.log(self.gammas / GAMMA1)).argmin())
        same = {f"{name}, at this std": float(values[at]) for name, values in self.k_same_std.items()}
        return {"std": float(self.stds[at]), "K": float(self.k[at, first]), "lemma": float(self.lemma[at])} | same

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "stds": self.stds.tolist(),
            "gamma1": self.gammas.tolist(),
            "K": self.k.tolist(),
            "K_other_bounds_by_std": {name: values.tolist() for name, values in self.k_same_std.items()},
            "planes": self.planes,
            "lemma": self.lemma.tolist(),
            "knee": self.knee,
            "mean_abs_weight": self.mean_abs,
            "near_the_knee": self.near(self.knee),
        }


def put_together(rows: Sequence[dict[str, Any]]) -> Ks:
    """The table from its rows, in the order of their stds."""
    moments = [Moment.from_dict({k: v for k, v in row.items() if k != "mean_abs"}) for row in rows]
    parts = ("log_stds", "log_moments", "means", "variances", "errors", "negative")
    joined = {name: np.concatenate([getattr(m, name) for m in moments]) for name in parts}
    first = moments[0]
    measured = sum(m.measured for m in moments)
    moment = Moment(gammas=first.gammas, n=first.n, n_used=first.n_used, measured=measured, **joined)
    bound = AUTO.bound(moment.n, 0.05, moment, 1)
    at_start = bound.at_start().numpy()
    good = np.flatnonzero(at_start <= at_start.min() * (1 + AUTO.knee))
    k = np.stack([moment.k("mean", gamma_min=float(g)) for g in moment.gammas], axis=1)
    return Ks(
        np.exp(moment.log_stds),
        moment.gammas,
        k,
        {
            "sub-Gaussian": np.array([moment.k_two_sided(float(v)) for v in moment.log_stds]),
            "CGF": np.maximum(moment.k("mean"), moment.variances.mean(axis=1) / 2),
        },
        moment.k_lemma(),
        float(math.exp(moment.log_stds[good.max()])),
        float(rows[0]["mean_abs"]),
    )
