"""Training part by part for a recursive certificate: what one part has taught is the prior of the next.

The examples come in parts, each as large as all before it.  The posterior that was trained on the first parts becomes the prior, every
weight with the std it has reached, and training goes on with one more part; the divergence that is charged there is that from this prior,
and the examples that count are those that it has not seen.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from pactrain.bounds.recursive import GAMMA, Level
from pactrain.distributions.gaussian import spread
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import Loss
from pactrain.runtime.events import Event
from pactrain.training.budget import Budget
from pactrain.training.start import Start
from pactrain.training.trainer import Trainer

STEPS = 0.3
"""Steps of training on each part but the last, in units of those on all parts."""

MeasureLevel = Callable[[Posterior, TensorBatches, Loss, bool, int], Level]
"""Measures a level, given the posterior, the examples that its prior has not seen, the loss, whether it is the first level, and a seed."""


def end_level(trainer: Trainer, start: Start, measure_level: MeasureLevel) -> None:
    """Measure what the level that has been trained proves.

    Args:
        trainer: At the end of a level; its progress takes what was measured.
        start: Where the run started, with all its parts.
        measure_level: Measures it.
    """
    met = trainer.progress.blocks
    now = start.grown(len(met))
    unseen = _unseen(now)
    level = measure_level(trainer.posterior, unseen, now.problem.loss, not met, start.options.seed)
    met.append(level.text)
    errors = level.counts[min(1, len(level.counts) - 1)]
    start.notify(Event("block", len(met), start.blocks + 1, {"examples": level.n, "errors": errors}))


def _unseen(now: Start) -> TensorBatches:
    """The examples that the prior of the present level has not seen: those it is trained on now, and all later ones."""
    table = now.problem.batches.table
    assert table is not None
    rows = torch.arange(now.seen_by_prior, len(table), device=table.tensors[0].device)
    return table.picked(rows).joined(now.problem.blocks)


@torch.no_grad()
def rebase(posterior: Posterior) -> None:
    """Make the posterior its own prior: the stds of the prior are counted in units of those that it has reached."""
    own = posterior.log_std.detach().double()
    at_prior = spread(posterior.prior_log_std.detach().double(), own, posterior.group_slices)
    posterior.prior_mean.copy_(posterior.flat_means())
    posterior.units = torch.exp(own - at_prior).to(posterior.prior_mean)
    posterior.prior_log_std.requires_grad_(False)


@torch.no_grad()
def back_to_first_prior(posterior: Posterior, prior_mean: Tensor) -> None:
    """Describe the posterior against the prior that no example had a part in."""
    if posterior.units is not None:
        posterior.prior_mean.copy_(prior_mean)
        posterior.units = None
        posterior.prior_log_std.requires_grad_(not posterior.prior_fixed)


def budget_of(start: Start, parts: int) -> Budget:
    """The budget of a training on this number of parts.

    Args:
        start: Where the run started, with all its parts.
        parts: How many of them are trained on; 1 for the first alone.
    """
    limit, rules, table = start.options.limit, start.options.rules, start.problem.batches.table
    assert table is not None
    sizes = [len(part) for part in (table, *start.problem.blocks)]
    steps, last = (max(1, round(sum(some) / table.batch_size)) for some in (sizes[:parts], sizes))
    whole = rules.stage1_epochs(last) if limit.epochs is None else min(limit.epochs, rules.stage1_epochs(last))
    epochs = whole if parts == len(sizes) else math.ceil(STEPS * whole * last / steps)
    return replace(limit, seconds=limit.seconds / len(sizes), epochs=epochs)


def pays_of(start: Start, parts: int) -> float:
    """Part of the divergence's weight that is held while so many parts are trained on: what the last bound pays for that level.

    Args:
        start: Where the run started, with all its parts.
        parts: How many of them are trained on; 1 for the first alone.
    """
    return GAMMA ** (start.blocks + 1 - parts)


def epochs_of_parts(trainer: Trainer, start: Start) -> int:
    """The epoch at which training is likely to end, with all parts that are still to come."""
    left = range(len(trainer.progress.blocks) + 2, start.blocks + 2)
    return trainer.expected_epochs() + sum(budget_of(start, parts).epochs or 0 for parts in left)
