"""The best answer that does not look at the inputs: what a network has to beat before its scores mean anything."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pactrain.problem.batches import Batches
from pactrain.problem.losses import AnyLoss, LabelsLoss, Loss, per_row

LEVELS = 19
"""Quantiles of the targets that are tried, beside their mean: 0.05, 0.10, …, 0.95."""


@dataclass(frozen=True)
class ConstantAnswer:
    """What the best constant answer has on some rows.

    errors: 0-1 error of each row (share of wrong pixels or tokens where a row has several); None for other tasks.
    losses: loss of each row by the constant that is best in the mean.
    """

    errors: Tensor | None
    losses: Tensor

    @property
    def error(self) -> float | None:
        """Mean 0-1 error."""
        return None if self.errors is None else float(self.errors.mean())

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float(self.losses.mean())

    def clipped(self, limit: float) -> float:
        """Mean loss with each row's loss cut off at `limit`."""
        return float(self.losses.clamp(max=limit).mean())


@torch.no_grad()
def best_constant(batches: Batches, loss: AnyLoss) -> ConstantAnswer | None:
    """The best constant answer on the rows of `batches`; None for a callable, which does not say what its targets are.

    Classification: always the most common class (or set of labels); for the loss, the classes' own shares as probabilities.
    Regression: the best of the mean and the quantiles of the targets.

    >>> from pactrain.problem.batches import TensorBatches
    >>> from pactrain.problem.losses import LOSSES
    >>> rows = TensorBatches((torch.zeros(4, 1), torch.tensor([0, 1, 1, 1])), 4)
    >>> best_constant(rows, LOSSES["cross_entropy"]).error
    0.25
    """
    if not isinstance(loss, Loss):
        return None
    target = torch.cat([_target(loss, batch) for batch in batches.ordered()])
    if isinstance(loss, LabelsLoss):
        return _labels(loss, target)
    if loss.task == "regression":
        return ConstantAnswer(None, _best(loss, _levels(target.double()), target.double()))
    return None if target.is_floating_point() else _classes(loss, target)


def _target(loss: Loss, batch: Any) -> Tensor:
    def nothing(*_: Any, **__: Any) -> Tensor:
        return torch.zeros(0)

    return loss.read(nothing, batch)[1]


def _levels(target: Tensor) -> list[Tensor]:
    """The mean of the targets and their quantiles, each of one row."""
    ordered = target.sort(0).values
    places = [round((len(target) - 1) * (i + 1) / (LEVELS + 1)) for i in range(LEVELS)]
    return [target.mean(0), *(ordered[at] for at in places)]


def _classes(loss: Loss, target: Tensor) -> ConstantAnswer:
    counts = torch.bincount(target.reshape(-1).clamp(min=0)).double()
    shares = counts / counts.sum()
    outputs = [shares.log().clamp(min=math.log(1e-12)), torch.zeros_like(shares)]
    outputs.append(torch.nn.functional.one_hot(shares.argmax(), len(shares)).double())
    shaped = [o.reshape(-1, *[1] * (target.ndim - 1)).expand(-1, *target.shape[1:]) for o in outputs]
    return ConstantAnswer(per_row((target != int(shares.argmax())).double()), _best(loss, shaped, target))


def _labels(loss: Loss, target: Tensor) -> ConstantAnswer:
    rows = target.reshape(len(target), -1)
    patterns, counts = rows.unique(dim=0, return_counts=True)
    wrong = (rows != patterns[counts.argmax()]).any(1).double()
    shares = target.double().mean(0).clamp(1e-12, 1 - 1e-12)
    return ConstantAnswer(wrong, _best(loss, [shares.logit()], target.double()))


def _best(loss: Loss, outputs: Iterable[Tensor], target: Tensor) -> Tensor:
    """Losses of the rows at the constant output whose mean loss is smallest."""
    tried = [per_row(loss.per_example(o.expand(len(target), *o.shape), target)).double() for o in outputs]
    return min(tried, key=lambda losses: float(losses.mean()))
