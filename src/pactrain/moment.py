"""The scan of the prior: ψ(γ, std), the exponential moment of the loss under prior draws.

For prior draws θ_l, l = 1..S, at one std, and their per-example losses x_lj:

    logM_l(γ) = ln mean_j exp( γ (mean_j x_lj − x_lj) )
    ψ_mean(γ)  = ln mean_l exp logM_l(γ)                   the paper's definition
    ψ_mfold(γ) = (1/n) ln mean_l exp( n logM_l(γ) )        what the proof needs
    ψ_max(γ)   = max_l logM_l(γ)

All γ come from one pass over the losses; every std uses the same noise.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pactrain import ranks
from pactrain.batches import as_batches
from pactrain.errors import PactrainError, TrainingError
from pactrain.events import Callback, Event, silent
from pactrain.losses import AnyLoss, per_example, resolve
from pactrain.modes import batch_statistics
from pactrain.posterior import Posterior
from pactrain.seeds import generator

Array = NDArray[np.float64]
Average = Literal["mean", "mfold", "max"]

NEGATIVE = np.array([-1.0, -0.5])
"""γ below zero at which the moment is taken too, for the sub-Gaussian bound of other papers."""

LOG_STD_RANGE = (-6.0, 1.0)
"""Log-stds that are scanned, and to which the prior is kept: the paper's log-variances, −12 to 2."""


def log_grid(low: float, high: float, points: int) -> Array:
    """`points` numbers from low to high, evenly spaced in their logarithm."""
    return np.exp(np.linspace(math.log(low), math.log(high), points))


@dataclass(frozen=True)
class Moment:
    """The table logM[std, draw, γ] with the mean and variance of the loss at each std and draw."""

    log_stds: Array
    gammas: Array
    log_moments: Array
    means: Array
    variances: Array
    errors: Array
    negative: Array
    n: int
    n_used: int

    def psi(self, average: Average = "mfold", *, monotone: bool = True) -> Array:
        """ψ[std, γ]; by default made non-decreasing in std, as a larger prior must not look cheaper by chance."""
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
        """The paper's K[std] = max over γ in [gamma_min, gamma_max] of ψ(γ)/γ²."""
        inside = gammas_between(self.gammas, gamma_min, gamma_max)
        return np.asarray((self.psi(average)[:, inside] / self.gammas[inside] ** 2).max(axis=1))

    def k_lemma(self) -> Array:
        """The lemma's upper bound of K[std] for a non-negative loss: max{(E X)², Var X}, largest over draws."""
        return np.asarray(np.maximum(self.means**2, self.variances).max(axis=1))

    def k_two_sided(self, log_std: float) -> float:
        """Sub-Gaussian factor at the std nearest to `log_std`: the supremum of ψ(γ)/γ² over |γ| ≤ 1.

        It is never below Var/2, the limit γ → 0; the side γ < 0 was scanned at γ = −1 and −½.
        """
        at = int(np.abs(self.log_stds - log_std).argmin())
        small = self.gammas <= 1
        right = (self.psi("mean")[at, small] / self.gammas[small] ** 2).max(initial=0.0)
        left = (np.logaddexp.reduce(self.negative[at], axis=0) - math.log(len(self.negative[at]))) / NEGATIVE**2
        return float(max(right, left.max(), self.variances[at].mean() / 2))

    def loss(self) -> Array:
        """Mean loss under the prior at each std."""
        return np.asarray(self.means.mean(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        arrays = ("log_stds", "gammas", "log_moments", "means", "variances", "errors", "negative")
        return {"n": self.n, "n_used": self.n_used} | {name: getattr(self, name).tolist() for name in arrays}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Moment":
        """The inverse of `to_dict`."""
        arrays = {k: np.asarray(v, dtype=np.float64) for k, v in values.items() if k not in ("n", "n_used")}
        return cls(n=int(values["n"]), n_used=int(values["n_used"]), **arrays)


def gammas_between(gammas: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Which grid points lie in [low, high]; at least one must."""
    inside = (gammas >= low * (1 - 1e-12)) & (gammas <= high * (1 + 1e-12))
    if not inside.any():
        raise PactrainError(f"no γ of the scan ({gammas[0]:g} to {gammas[-1]:g}) lies between {low:g} and {high:g}")
    return inside


def estimate_moment(
    posterior: Posterior,
    data: Any,
    loss: str | AnyLoss | None = None,
    *,
    gammas: Iterable[float] | None = None,
    log_stds: Iterable[float] | None = None,
    draws: int = 10,
    max_examples: int = 4096,
    n: int | None = None,
    seed: int = 0,
    progress: Callback = silent,
) -> Moment:
    """Scan the prior before training: `draws` networks at each std, each measured once on the data.

    Where there are more than `max_examples` examples a random subset is used.  `errors` holds the standard error of logM
    (of its worst draw) that measuring on finitely many examples brings.  Under `torch.distributed` the draws are shared out among the ranks.
    """
    device = posterior.log_std.device
    batches = as_batches(data, batch_size=None, device=device)
    first = next(iter(batches.ordered()), None)
    if first is None:
        raise PactrainError("the data has no batch: there is nothing to scan")
    loss = resolve(loss, first)
    gamma_grid = np.asarray(list(gammas) if gammas is not None else log_grid(0.5, 200.0, 40), dtype=np.float64)
    std_grid = np.asarray(list(log_stds) if log_stds is not None else np.linspace(*LOG_STD_RANGE, 15))
    if draws < 1 or (np.diff(std_grid) <= 0).any() or (gamma_grid <= 0).any() or (np.diff(gamma_grid) <= 0).any():
        raise PactrainError("the scan needs at least one draw, and increasing positive γ and increasing log-stds")
    with batch_statistics(posterior.model):
        count = n if n is not None else _count(posterior, batches.ordered(), loss)
        subset = batches.subset(max_examples, seed)
        used = count if max_examples >= count else _count(posterior, subset, loss)
        rows = _scan(posterior, subset, loss, gamma_grid, std_grid, draws, seed, progress)
    return _finite_part(rows, std_grid, gamma_grid, count, used)


@torch.no_grad()
def _count(posterior: Posterior, batches: Iterable[Any], loss: AnyLoss) -> int:
    return sum(len(per_example(loss, posterior.model, batch)) for batch in batches)


@torch.no_grad()
def _scan(
    posterior: Posterior,
    subset: list[Any],
    loss: AnyLoss,
    gammas: Array,
    log_stds: Array,
    draws: int,
    seed: int,
    progress: Callback,
) -> Array:
    """rows[std, draw] = (logM at each γ, its standard error at each γ, mean loss, its variance, logM at γ < 0)."""
    rank, world = ranks.rank(), ranks.world()
    table = np.zeros((len(log_stds), draws, 2 * len(gammas) + 2 + len(NEGATIVE)))
    for draw in range(draws):
        noise = posterior.fresh_noise(generator(posterior.log_std.device, seed, "scan", draw))
        for i, log_std in enumerate(log_stds):
            index = draw * len(log_stds) + i
            if index % world != rank:
                continue
            with posterior.prior_draw(torch.full_like(posterior.prior_log_std, float(log_std)), noise) as model:
                losses = torch.cat([per_example(loss, model, batch) for batch in subset]).double().cpu().numpy()
            table[i, draw] = _row(losses, gammas)
            progress(Event("scan", index + 1, draws * len(log_stds), {"std": math.exp(log_std)}))
    return _added_up(table, posterior)


@torch.no_grad()
def moment_at(
    posterior: Posterior,
    batches: list[Any],
    loss: AnyLoss,
    log_std: torch.Tensor,
    gammas: Array,
    *,
    draws: int,
    seed: int,
) -> tuple[Array, Array]:
    """logM[draw, γ] and its standard errors at one vector of prior log-stds (one entry a group)."""
    table = np.zeros((draws, 2 * len(gammas) + 2 + len(NEGATIVE)))
    for draw in range(ranks.rank(), draws, ranks.world()):
        noise = posterior.fresh_noise(generator(posterior.log_std.device, seed, "psi", draw))
        with posterior.prior_draw(log_std, noise) as model:
            losses = torch.cat([per_example(loss, model, batch) for batch in batches]).double().cpu().numpy()
        table[draw] = _row(losses, gammas)
    table = _added_up(table, posterior)
    return table[:, : len(gammas)], table[:, len(gammas) : 2 * len(gammas)]


def _row(losses: Array, gammas: Array) -> Array:
    mean = losses.mean()
    exponents = gammas[:, None] * (mean - losses)[None, :]
    with np.errstate(all="ignore"):
        top = exponents.max(axis=1, keepdims=True)
        scaled = np.exp(exponents - top)
        average = scaled.mean(axis=1)
        log_moment = np.log(average) + top[:, 0]
        error = scaled.std(axis=1) / average / math.sqrt(len(losses))
        below = NEGATIVE[:, None] * (mean - losses)[None, :]
        negative = np.logaddexp.reduce(below, axis=1) - math.log(len(losses))
    return np.concatenate([log_moment, error, [mean, losses.var()], negative])


def _finite_part(rows: Array, log_stds: Array, gammas: Array, n: int, n_used: int) -> Moment:
    """Keep the stds up to the first at which a draw's loss overflowed: beyond it no network can be measured."""
    finite = [bool(np.isfinite(row).all()) for row in rows]
    keep = finite.index(False) if False in finite else len(finite)
    if keep == 0:
        raise TrainingError(
            f"the loss is not finite at the initial weights with prior std {math.exp(log_stds[0]):.2g}; "
            "check the inputs for huge values and the loss for logarithms of zero"
        )
    g = len(gammas)
    rows = rows[:keep]
    return Moment(
        log_stds=log_stds[:keep],
        gammas=gammas,
        log_moments=rows[:, :, :g],
        errors=rows[:, :, g : 2 * g].max(axis=1),
        means=rows[:, :, 2 * g],
        variances=rows[:, :, 2 * g + 1],
        negative=rows[:, :, 2 * g + 2 :],
        n=n,
        n_used=n_used,
    )


def _added_up(table: Array, posterior: Posterior) -> Array:
    """A table whose rows were shared out among ranks."""
    if ranks.world() == 1:
        return table
    return np.asarray(ranks.add_up(torch.from_numpy(table).to(posterior.log_std.device)).cpu().numpy())
