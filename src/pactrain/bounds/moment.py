"""What the scan of the prior finds (`scan/estimate.py`): ψ(γ, std), the exponential moment of the loss under prior draws.

For prior draws θ_l, l = 1..S, at one std, and their per-example losses x_lj:

    logM_l(γ) = ln mean_j exp( γ (mean_j x_lj − x_lj) )
    ψ_mean(γ)  = ln mean_l exp logM_l(γ)                   the paper's definition
    ψ_mfold(γ) = (1/n) ln mean_l exp( n logM_l(γ) )        what the proof needs
    ψ_max(γ)   = max_l logM_l(γ)

All γ come from one pass over the losses; every std uses the same noise.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pactrain.runtime.errors import PactrainError

Array = NDArray[np.float64]
Average = Literal["mean", "mfold", "max"]

NEGATIVE = np.array([-1.0, -0.5])
"""γ below zero at which the moment is taken too, for the sub-Gaussian bound of other papers."""

COUNTS = ("n", "n_used", "measured")
"""The fields that are single numbers."""

LOG_STD_RANGE = (-6.0, 1.0)
"""Log-stds that are scanned, and to which the prior is kept: the paper's log-variances, −12 to 2."""


def log_grid(low: float, high: float, points: int) -> Array:
    """`points` numbers from low to high, evenly spaced in their logarithm."""
    return np.exp(np.linspace(math.log(low), math.log(high), points))


@dataclass(frozen=True)
class Moment:
    """What the scan of the prior found: the table logM[std, draw, γ], and the loss at each std and draw.

    Attributes:
        log_stds: Logarithms of the prior's stds that were scanned, increasing.
        gammas: Values of γ, increasing.
        log_moments: logM[std, draw, γ].
        means: Mean loss [std, draw].
        variances: Variance of the loss [std, draw].
        errors: Standard error of logM [std, γ], of its worst draw, from measuring on finitely many examples.
        negative: logM at the values of γ below zero in `NEGATIVE` [std, draw, γ].
        n: Number of examples of the problem.
        n_used: Number of examples that were measured.
        measured: Number of networks that were drawn and measured; the rest of the table lies between two that hardly differ.

    Example:
        >>> import torch
        >>> from pactrain import Posterior, estimate_moment
        >>> X = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
        >>> moment = estimate_moment(Posterior(torch.nn.Linear(3, 2)), (X, (X[:, 0] > 0).long()), draws=2)
        >>> moment.psi().shape == (len(moment.log_stds), len(moment.gammas))
        True
    """

    log_stds: Array
    gammas: Array
    log_moments: Array
    means: Array
    variances: Array
    errors: Array
    negative: Array
    n: int
    n_used: int
    measured: int

    def psi(self, average: Average = "mfold", *, monotone: bool = True) -> Array:
        """ψ as a table.

        Args:
            average: How the moments of the draws are averaged: "mean", "mfold" or "max".
            monotone: Make it non-decreasing in the std, as a larger prior must not look cheaper by chance.

        Returns:
            ψ[std, γ].

        Raises:
            PactrainError: `average` is not known.
        """
        draws = self.log_moments.shape[1]
        if average == "mean":
            table = np.logaddexp.reduce(self.log_moments, axis=1) - math.log(draws)
        elif average == "mfold":
            table = (np.logaddexp.reduce(self.n * self.log_moments, axis=1) - math.log(draws)) / self.n
        elif average == "max":
            table = self.log_moments.max(axis=1)
        else:
            raise PactrainError(f"average={average!r} is not known; use 'mean', 'mfold' or 'max'")
        table = np.maximum(np.asarray(table, dtype=np.float64), 0.0)
        return np.maximum.accumulate(table, axis=0) if monotone else table

    def k(self, average: Average = "mean", *, gamma_min: float = 0.0, gamma_max: float = math.inf) -> Array:
        """The paper's K.

        Args:
            average: As in `psi`.
            gamma_min: Smallest γ.
            gamma_max: Largest γ.

        Returns:
            K[std] = max over γ in [gamma_min, gamma_max] of ψ(γ)/γ².

        Raises:
            PactrainError: No γ of the scan lies between them.
        """
        inside = gammas_between(self.gammas, gamma_min, gamma_max)
        return np.asarray((self.psi(average)[:, inside] / self.gammas[inside] ** 2).max(axis=1))

    def k_lemma(self) -> Array:
        """The lemma's upper bound of K for a non-negative loss.

        Returns:
            max{(E X)², Var X} at each std, largest over draws.
        """
        return np.asarray(np.maximum(self.means**2, self.variances).max(axis=1))

    def k_two_sided(self, log_std: float) -> float:
        """Sub-Gaussian factor at one std; the side γ < 0 was scanned at γ = −1 and −½.

        Args:
            log_std: The nearest scanned log-std is taken.

        Returns:
            The supremum of ψ(γ)/γ² over |γ| ≤ 1, never below Var/2, the limit γ → 0.
        """
        at = int(np.abs(self.log_stds - log_std).argmin())
        small = self.gammas <= 1
        right = (self.psi("mean")[at, small] / self.gammas[small] ** 2).max(initial=0.0)
        left = (np.logaddexp.reduce(self.negative[at], axis=0) - math.log(len(self.negative[at]))) / NEGATIVE**2
        return float(max(right, left.max(), self.variances[at].mean() / 2))

    def loss(self) -> Array:
        """Mean loss under the prior.

        Returns:
            One value per std.
        """
        return np.asarray(self.means.mean(axis=1))

    def subset_error(self, log_std: float, gamma: float) -> float:
        """Standard error that measuring on a subset of the examples brings to ψ(γ)/γ.

        Args:
            log_std: The nearest scanned log-std is taken.
            gamma: The nearest γ of the grid is taken.

        Returns:
            The error in units of the loss; zero where all examples were used.
        """
        at, column = int(np.abs(self.log_stds - log_std).argmin()), int(np.abs(np.log(self.gammas / gamma)).argmin())
        left = max(0.0, 1 - self.n_used / self.n)  # examples drawn without repetition
        return float(self.errors[at, column] / self.gammas[column] * math.sqrt(left))

    def to_dict(self) -> dict[str, Any]:
        """Turn the tables into values for JSON.

        Returns:
            Plain lists and numbers, by field.
        """
        arrays = ("log_stds", "gammas", "log_moments", "means", "variances", "errors", "negative")
        counts = {name: getattr(self, name) for name in COUNTS}
        return counts | {name: getattr(self, name).tolist() for name in arrays}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Moment":
        """Read what `to_dict` has made.

        Args:
            values: Lists and numbers, by field.

        Returns:
            The moment.

        Raises:
            ValueError: The tables do not belong to one another.
        """
        arrays = {k: np.asarray(v, dtype=np.float64) for k, v in values.items() if k not in COUNTS}
        measured = int(values.get("measured", arrays["means"].size))  # older files: all were
        made = cls(n=int(values["n"]), n_used=int(values["n_used"]), measured=measured, **arrays)
        made._check_shapes()
        return made

    def _check_shapes(self) -> None:
        """Raise ValueError unless the tables belong to one another."""
        if self.log_moments.ndim != 3 or 0 in self.log_moments.shape:
            raise ValueError(f"log_moments has the shape {self.log_moments.shape}")
        stds, draws, gammas = self.log_moments.shape
        wanted = {"log_stds": (stds,), "gammas": (gammas,), "errors": (stds, gammas), "means": (stds, draws)}
        wanted |= {"variances": (stds, draws), "negative": (stds, draws, len(NEGATIVE))}
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has the shape {getattr(self, name).shape} and not {shape}")
        if min(self.n, self.n_used) < 1:
            raise ValueError(f"{self.n_used} examples of {self.n} were used")


def gammas_between(gammas: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Which grid points lie in [low, high]; at least one must."""
    inside = (gammas >= low * (1 - 1e-12)) & (gammas <= high * (1 + 1e-12))
    if not inside.any():
        raise PactrainError(f"no γ of the scan ({gammas[0]:g} to {gammas[-1]:g}) lies between {low:g} and {high:g}")
    return inside
