"""Weights of classes and of single examples in the loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pactrain.problem.batches import Batches
from pactrain.problem.call_network import Predict
from pactrain.problem.losses import Loss, Meaning
from pactrain.problem.named_losses import weighted
from pactrain.runtime.errors import DataError, PactrainError

ClassWeight = str | Mapping[int, float] | Sequence[float] | Tensor


@dataclass(frozen=True)
class RowWeighted(Loss):
    """A loss in which each example counts by a weight of its own, the last part of a batch.

    Attributes:
        inner: The loss without weights.
    """

    inner: Loss = field(kw_only=True)

    @classmethod
    def of(cls, loss: Loss) -> "RowWeighted":
        """The loss with weights."""
        return cls(
            f"weighted_{loss.name}", loss.per_example, loss.task, unit=loss.unit, probabilities=loss.probabilities, inner=loss
        )  # fmt: skip

    def __call__(self, predict: Predict, batch: Any) -> Tensor:
        """Per-example losses, each times its weight."""
        losses = self.inner(predict, batch[:-1])
        weighed: Tensor = losses * batch[-1].to(losses)
        return weighed

    def read(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """Output and target, without the weights."""
        return self.inner.read(predict, batch[:-1])

    def with_score(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor | None]:
        """Weighted losses, and scores in which every example counts once."""
        losses, scores = self.inner.with_score(predict, batch[:-1])
        return losses * batch[-1].to(losses), scores

    def is_classification(self, batch: Any) -> bool:
        """True if classes are predicted."""
        return self.inner.is_classification(batch[:-1])

    @property
    def meaning(self) -> Meaning:
        """What the outputs mean, as without weights."""
        return self.inner.meaning

    @property
    def plain(self) -> Loss:
        """The loss without weights."""
        return self.inner

    def guarded(self) -> Loss:
        """The loss with the user's part of it guarded."""
        return replace(self, inner=self.inner.guarded())


def weigh_rows(batches: Batches, weight: Any | None, loss: Loss) -> None:
    """Give the rows their weights as a further tensor; weights of one if there are none.

    Raises:
        DataError: The weights do not fit the rows.
        PactrainError: Rows cannot be told apart, or the loss reads batches itself.
    """
    table = batches.table
    if table is None or not loss.of_outputs:
        raise PactrainError(
            "sample_weight goes with an (X, y) pair or a TensorDataset and a loss of (output, target); in batches or a "
            "loss(predict, batch) of your own, multiply the losses by the weights"
        )
    first = table.tensors[0]
    values = torch.ones(len(table), device="cpu") if weight is None else _weights("sample_weight", weight)
    if len(values) != len(table):
        raise DataError(f"sample_weight has shape {tuple(values.shape)}; there are {len(table)} training rows")
    table.tensors = (*table.tensors, values.to(first.device))
    table.weighted = True


def weigh_classes(loss: Loss, weight: ClassWeight, batches: Batches) -> Loss:
    """The loss with each class counted by its weight.

    Args:
        loss: A loss of classes.
        weight: One weight per class, as a sequence or by class number (others have 1); or "balanced", in inverse proportion to
            the classes' numbers of examples.
        batches: The training data.

    Raises:
        PactrainError: The weights or the loss cannot be used.
    """
    if loss.task != "classification" or not loss.of_outputs:
        raise PactrainError(
            "class_weight goes with a loss of classes, such as cross_entropy; write weights into your own"
        )
    if isinstance(weight, str):
        if weight != "balanced":
            raise PactrainError(f"class_weight={weight!r} is not known; pass 'balanced' or one weight per class")
        return weighted(loss, _balanced(loss, batches))
    if not isinstance(weight, Mapping):
        return weighted(loss, _weights("class_weight", weight))
    if not all(isinstance(label, Integral) and label >= 0 for label in weight):
        raise PactrainError(
            f"class_weight names classes {list(weight)}; classes are numbered from 0, as in {{0: 1.0, 1: 3.0}}"
        )
    return weighted(loss, _weights("class_weight", _of_mapping(weight)), padded=True)


def _weights(name: str, given: Any) -> Tensor:
    """Weights as a vector; raises DataError where they are none."""
    try:
        values = torch.as_tensor(given.detach() if isinstance(given, Tensor) else np.array(given), device="cpu")
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers ({error})") from error
    values = values.to(torch.get_default_dtype())
    if values.ndim != 1 or not bool((values >= 0).all() & values.isfinite().all() & (values > 0).any()):
        raise DataError(
            f"{name} must be a vector of finite numbers, none below zero and not all of them zero; its shape is {tuple(values.shape)}"
        )
    return values


def _of_mapping(weight: Mapping[int, float]) -> Tensor:
    table = torch.ones(max(map(int, weight), default=0) + 1, device="cpu")
    for label, value in weight.items():
        table[int(label)] = float(value)
    return table


def _balanced(loss: Loss, batches: Batches) -> Tensor:
    if batches.table is None:
        raise PactrainError(
            "class_weight='balanced' counts the rows of an (X, y) pair; pass one weight per class instead"
        )
    target = loss.target(batches.table.tensors)
    labels = target[target != loss.ignore].reshape(-1).long()
    counts = torch.bincount(labels)
    return len(labels) / (int((counts > 0).sum()) * counts.clamp(min=1).to(torch.get_default_dtype()))
