"""The scan of the prior: networks are drawn from it and measured before training.

All γ come from one pass over the losses, and every std uses the same noise.  Every fourth std is measured first; between two
at which a draw behaves nearly alike the table is filled in, elsewhere the gap is halved.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from pactrain.bounds.moment import LOG_STD_RANGE, NEGATIVE, Array, Moment, log_grid
from pactrain.distributions.posterior import Posterior
from pactrain.problem.as_loss import as_loss
from pactrain.problem.input_types import as_network_takes
from pactrain.problem.losses import AnyLoss, Loss, per_example
from pactrain.problem.module_modes import batch_statistics
from pactrain.problem.read_data import as_batches
from pactrain.problem.untrained import shapes_named
from pactrain.runtime import distributed
from pactrain.runtime.arguments import check_whole
from pactrain.runtime.errors import PactrainError, TrainingError
from pactrain.runtime.events import Callback, Event, silent
from pactrain.runtime.seeds import generator
from pactrain.scan.prior_losses import PriorLosses

COARSE = 4
"""Points of the grid of stds between two that are always measured."""

FLAT = 0.01
"""Part of the mean loss by which the loss and ψ(γ)/γ of one draw may differ at two stds that are not looked between."""

Gap = tuple[int, int, int]  # a draw, and the places of two stds


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
    """Scan the prior before training: draw networks at each std and measure each at most once on the data.

    Under `torch.distributed` the draws are shared out among the ranks.

    Args:
        posterior: The posterior whose prior is scanned.
        data: Anything that `fit` takes.
        loss: A name or a callable, as in `fit`.
        gammas: Values of γ, increasing; by default 40 from 0.5 to 200.
        log_stds: Logarithms of the prior's stds, increasing; by default 15 from −6 to 1.
        draws: Networks per std.
        max_examples: A random subset of so many examples is measured where there are more.
        n: Number of examples of the problem; by default it is counted.
        seed: Decides the draws and the subset.
        progress: Called with an `Event` now and then.

    Returns:
        The table ψ(γ, std), from which bounds for unbounded losses read.

    Raises:
        PactrainError: The data has no batch, or the grids are not increasing.

    Example:
        >>> X = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
        >>> moment = estimate_moment(Posterior(torch.nn.Linear(3, 2)), (X, (X[:, 0] > 0).long()), draws=2)
        >>> moment.n
        50
    """
    if not isinstance(posterior, Posterior):
        raise PactrainError(f"the scan takes a pactrain.Posterior, not {type(posterior).__name__}")
    check_whole("draws", draws, 1)
    device = posterior.log_std.device
    batches = as_batches(data, batch_size=None, device=device, dtype=posterior.means()[0].dtype)
    first = next(iter(batches.ordered()), None)
    if first is None:
        raise PactrainError("the data has no batch: there is nothing to scan")
    loss = as_loss(loss, first, posterior.model)
    if batches is not data:
        as_network_takes(posterior.model, batches, loss)
    gamma_grid, std_grid = _grids(gammas, log_stds)
    with shapes_named(first), batch_statistics(posterior.model):
        count = n if n is not None else _count(posterior, batches.ordered(), loss)
        subset = batches.subset(max_examples, seed)
        used = count if max_examples >= count else _count(posterior, subset, loss)
        rows, measured = _scan(posterior, subset, loss, gamma_grid, std_grid, draws, seed, progress)
    return _finite_part(rows, std_grid, gamma_grid, n=count, n_used=used, measured=measured)


def _grids(gammas: Iterable[float] | None, log_stds: Iterable[float] | None) -> tuple[Array, Array]:
    """The values of γ and of log-stds at which the moment is measured."""
    gamma_grid = np.asarray(list(gammas) if gammas is not None else log_grid(0.5, 200.0, 40), dtype=np.float64)
    std_grid = np.asarray(list(log_stds) if log_stds is not None else np.linspace(*LOG_STD_RANGE, 15))
    if (np.diff(std_grid) <= 0).any() or (gamma_grid <= 0).any() or (np.diff(gamma_grid) <= 0).any():
        raise PactrainError("the scan needs increasing positive γ and increasing log-stds")
    return gamma_grid, std_grid


@torch.no_grad()
def _count(posterior: Posterior, batches: Iterable[Any], loss: Loss) -> int:
    return sum(len(per_example(loss, posterior.model, batch)) for batch in batches)


@torch.no_grad()
def _scan(
    posterior: Posterior,
    subset: list[Any],
    loss: Loss,
    gammas: Array,
    log_stds: Array,
    draws: int,
    seed: int,
    progress: Callback,
) -> tuple[Array, int]:
    """rows[std, draw] as `_row` makes them, and the number of them that were measured."""
    table = np.zeros((len(log_stds), draws, 2 * len(gammas) + 2 + len(NEGATIVE)))
    measured = torch.zeros(1, dtype=torch.float64, device=posterior.log_std.device)
    losses = PriorLosses(posterior, subset, loss)
    mine, done = range(distributed.rank(), draws, distributed.world()), 0
    coarse = sorted({*range(0, len(log_stds), COARSE), len(log_stds) - 1})
    size = losses.at_once
    for start in range(0, len(mine), size):
        some = mine[start : start + size]
        noise = {d: posterior.fresh_noise(generator(posterior.log_std.device, seed, "scan", d)) for d in some}
        wanted = [(d, i) for d in some for i in coarse]
        gaps = [(d, a, b) for d in some for a, b in pairwise(coarse)]
        while wanted:
            at = [(noise[d], torch.full_like(posterior.prior_log_std, float(log_stds[i]))) for d, i in wanted]
            for (d, i), values in zip(wanted, losses.at(at), strict=True):
                table[i, d] = _row(values, gammas)
                done += 1
                progress(Event("scan", done, len(mine) * len(log_stds), {"std": math.exp(log_stds[i])}))
            measured += len(wanted)
            flat = [gap for gap in gaps if gap[2] - gap[1] > 1 and _is_flat(table, gap, gammas)]
            for gap in flat:
                _fill_in(table, gap, log_stds)
                done += gap[2] - gap[1] - 1
                progress(Event("scan", done, len(mine) * len(log_stds), {"std": math.exp(log_stds[gap[2]])}))
            wanted, gaps = _halved([gap for gap in gaps if gap[2] - gap[1] > 1 and gap not in flat])
    return _added_up(table, posterior), int(distributed.add_up(measured))


def _is_flat(table: Array, gap: Gap, gammas: Array) -> bool:
    """True if a draw behaves nearly alike at the two ends of a gap."""
    draw, a, b = gap
    g, low, high = len(gammas), table[a, draw], table[b, draw]
    allowed = FLAT * max(abs(low[2 * g]), abs(high[2 * g]))
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.append((high[:g] - low[:g]) / gammas, high[2 * g] - low[2 * g]))
    return bool((difference <= allowed).all())  # false where anything is not finite


def _fill_in(table: Array, gap: Gap, log_stds: Array) -> None:
    """Interpolate linearly in the std: at fixed noise, a small change of the weights changes a loss almost linearly."""
    draw, a, b = gap
    stds = np.exp(log_stds[a : b + 1])
    share = ((stds - stds[0]) / (stds[-1] - stds[0]))[1:-1, None]
    table[a + 1 : b, draw] = (1 - share) * table[a, draw] + share * table[b, draw]


def _halved(gaps: list[Gap]) -> tuple[list[tuple[int, int]], list[Gap]]:
    """The middles of gaps, to be measured, and the two halves of each."""
    middles = [(d, (a + b) // 2) for d, a, b in gaps]
    halves = [half for (d, a, b), (_, m) in zip(gaps, middles, strict=True) for half in ((d, a, m), (d, m, b))]
    return middles, halves


@torch.no_grad()
def moment_at(
    posterior: Posterior,
    batches: list[Any],
    loss: Loss,
    log_std: torch.Tensor,
    gammas: Array,
    *,
    draws: int,
    seed: int,
) -> tuple[Array, Array]:
    """logM[draw, γ] and its standard errors at one vector of prior log-stds (one entry per group)."""
    table = np.zeros((draws, 2 * len(gammas) + 2 + len(NEGATIVE)))
    losses = PriorLosses(posterior, batches, loss)
    mine = range(distributed.rank(), draws, distributed.world())
    noise = ((posterior.fresh_noise(generator(posterior.log_std.device, seed, "psi", d)), log_std) for d in mine)
    for draw, values in zip(mine, losses.at(noise), strict=True):
        table[draw] = _row(values, gammas)
    table = _added_up(table, posterior)
    return table[:, : len(gammas)], table[:, len(gammas) : 2 * len(gammas)]


def _row(losses: Array, gammas: Array) -> Array:
    """logM at each γ, its standard error at each γ, the mean loss, its variance, logM at γ < 0."""
    with np.errstate(all="ignore"):  # what is not finite is left out, or refused, where the table is used
        mean = losses.mean()
        exponents = gammas[:, None] * (mean - losses)[None, :]
        top = exponents.max(axis=1, keepdims=True)
        scaled = np.exp(exponents - top)
        average = scaled.mean(axis=1)
        log_moment = np.log(average) + top[:, 0]
        error = scaled.std(axis=1) / average / math.sqrt(len(losses))
        below = NEGATIVE[:, None] * (mean - losses)[None, :]
        negative = np.logaddexp.reduce(below, axis=1) - math.log(len(losses))
        return np.concatenate([log_moment, error, [mean, losses.var()], negative])


def _finite_part(rows: Array, log_stds: Array, gammas: Array, **counts: int) -> Moment:
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
        **counts,
    )


def _added_up(table: Array, posterior: Posterior) -> Array:
    """A table whose rows were shared out among ranks."""
    if distributed.world() == 1:
        return table
    return np.asarray(distributed.add_up(torch.from_numpy(table).to(posterior.log_std.device)).cpu().numpy())
