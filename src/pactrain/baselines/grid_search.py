"""Grid search over the settings of plain training: chosen on validation data, then trained again on everything."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from pactrain.baselines.plain_training import Settings, Trained, rank, train
from pactrain.problem.losses import AnyLoss
from pactrain.problem.scores import Scores
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


def combinations(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values of some settings, the last setting changing fastest.

    >>> combinations({"lr": (0.1, 0.01), "noise": (0.0,)})
    [{'lr': 0.1, 'noise': 0.0}, {'lr': 0.01, 'noise': 0.0}]
    """
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def best_trial(validation: Sequence[Scores | None]) -> int | None:
    """Which trial of a search wins, by its scores on the validation data: the first of equals, None if all failed.

    >>> best_trial([{"accuracy": 0.8, "loss": 0.5}, None, {"accuracy": 0.8, "loss": 0.4}])
    2
    """
    good = [(number, rank(scores)) for number, scores in enumerate(validation) if scores is not None]
    return max(good, key=lambda trial: trial[1])[0] if good else None


def refit_length(best_step: int | None) -> int:
    """Steps for which the winner is trained again on everything: as many as were best, and at least one."""
    return max(1, best_step or 0)


def grid(start: Settings, **choices: Sequence[Any]) -> list[Settings]:
    """Combine all choices, the other settings as in `start`.

    Args:
        start: Settings that are kept where there is no choice.
        **choices: Values to try, by the name of the setting.

    Returns:
        All combinations.

    Example:
        >>> [s.lr for s in grid(Settings(optimizer="adamw"), lr=(0.1, 0.01), weight_decay=(0.0,))]
        [0.1, 0.01]
    """
    return [replace(start, **values) for values in combinations(choices)]


def hold_out(data: tuple[Any, ...], seed: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The rows of arrays as two disjoint sets, training and validation."""
    rows = len(data[0])
    cut = round(VALIDATION_PART * rows)
    if not 0 < cut < rows:
        raise DataError(f"{rows} rows are too few to hold {100 * VALIDATION_PART:.0f} % of them out for validation")
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

    Args:
        make_model: Makes a fresh network.
        candidates: Settings to try, for example from `grid`.
        training: Data to train each of them on.
        validation: Data to choose by.
        everything: Data that the winner is trained on again.
        loss: As in `fit`.
        seed: Decides everything random.
        device: As in `fit`.

    Returns:
        The network, its settings, and every trial.

    Raises:
        PactrainError: No settings kept the loss finite.

    Example:
        >>> X = torch.randn(80, 3, generator=torch.Generator().manual_seed(0)); data = (X, (X[:, 0] > 0).long())
        >>> training, validation = hold_out(data, 0)
        >>> candidates = grid(Settings("adam", steps=40), lr=(1e-4, 1e-1))
        >>> parts = dict(training=training, validation=validation, everything=data)
        >>> search(lambda: nn.Linear(3, 2), candidates, **parts).chosen.lr
        0.1
    """
    trials: list[tuple[Settings, Trained | None]] = []
    for settings in candidates:
        try:
            found = train(make_model(), training, settings, loss=loss, validation=validation, seed=seed, device=device)
        except TrainingError:
            found = None
        trials.append((settings, found))
    number = best_trial([None if found is None else found.validation for _, found in trials])
    chosen, best = (None, None) if number is None else trials[number]
    if chosen is None or best is None:
        raise PactrainError("no settings of the grid kept the loss finite; add smaller learning rates to it")
    model, step = make_model(), refit_length(best.best_step)
    final = train(model, everything, chosen, loss=loss, stop_at=step, seed=seed, device=device)
    return Search(model, chosen, step, tuple(trials), final)
