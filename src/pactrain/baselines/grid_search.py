"""Grid search over the settings of plain training: chosen on validation data, then trained again on everything."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from pactrain.baselines.plain_training import Settings, Trained, train
from pactrain.problem.losses import AnyLoss
from pactrain.runtime.errors import DataError, PactrainError, TrainingError
from pactrain.runtime.seeds import derive

VALIDATION_PART = 0.2
"""Part of the training rows that a search holds out."""


@dataclass(frozen=True)
class Search:
    """What a search found: the settings, the step that was best on the validation data, and every trial."""

    model: nn.Module
    chosen: Settings
    best_step: int
    trials: tuple[tuple[Settings, Trained | None], ...]  # None: the loss did not stay finite
    final: Trained

    @property
    def trainings(self) -> int:
        """Number of networks trained."""
        return len(self.trials) + 1


def grid(start: Settings, **choices: Sequence[Any]) -> list[Settings]:
    """All combinations of the choices, the other settings as in `start`.

    >>> [s.lr for s in grid(Settings(optimizer="adamw"), lr=(0.1, 0.01), weight_decay=(0.0,))]
    [0.1, 0.01]
    """
    return [
        replace(start, **dict(zip(choices, values, strict=True))) for values in itertools.product(*choices.values())
    ]


def hold_out(
    data: tuple[Any, ...], seed: int, *, part: float = VALIDATION_PART
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The rows of arrays as two disjoint sets, training and validation."""
    rows = len(data[0])
    cut = round(part * rows)
    if not 0 < cut < rows:
        raise DataError(f"{rows} rows are too few to hold {100 * part:.0f} % of them out for validation")
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(derive(seed, "validation")))
    index = order if isinstance(data[0], torch.Tensor) else order.numpy()
    return tuple(a[index[cut:]] for a in data), tuple(a[index[:cut]] for a in data)


def search(
    make_model: Callable[[], nn.Module],
    candidates: Sequence[Settings],
    *,
    training: Any,
    validation: Any,
    everything: Any,
    loss: str | AnyLoss | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
) -> Search:
    """Train a fresh network with each of the settings; the best on `validation` is trained again on `everything`.

    For arrays, `training, validation = hold_out(everything, seed)`.  No test data comes near it.
    """
    trials: list[tuple[Settings, Trained | None]] = []
    for settings in candidates:
        try:
            found = train(make_model(), training, settings, loss=loss, validation=validation, seed=seed, device=device)
        except TrainingError:
            found = None
        trials.append((settings, found))
    good = [(s, t) for s, t in trials if t is not None]
    if not good:
        raise PactrainError("no settings of the grid kept the loss finite; add smaller learning rates to it")
    chosen, best = max(good, key=lambda pair: pair[1].rank)  # the first of equals
    model, step = make_model(), max(1, best.best_step or 0)
    final = train(model, everything, chosen, loss=loss, stop_at=step, seed=seed, device=device)
    return Search(model, chosen, step, tuple(trials), final)
