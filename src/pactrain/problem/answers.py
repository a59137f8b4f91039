"""What a network answers for rows whose targets are known, and the scores that need all answers at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating

Array = NDArray[Any]

MOST_VALUES = 20_000_000
"""Numbers that the answers may take; for more, only the scores that need one batch at a time are computed."""

MOST_CONFUSED = 5
"""Pairs of classes that are named as those that are confused most often."""


@dataclass(frozen=True)
class ClassAnswers:
    """The answers of a network that names one class per row.

    Attributes:
        target: The true class of each row.
        scores: One score per row and class, the higher the surer: probabilities where the loss has some.
        calibrated: True if the scores are probabilities.
    """

    target: Array
    scores: Array
    calibrated: bool

    @property
    def answer(self) -> Array:
        """The class named for each row."""
        return np.asarray(self.scores.argmax(1))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.scores.shape[1])

    def confusion(self) -> Array:
        """How often each class (row) was taken for each class (column)."""
        pairs = np.bincount(self.target * self.classes + self.answer, minlength=self.classes**2)
        return pairs.reshape(self.classes, self.classes)

    def most_confused(self) -> list[tuple[int, int, int]]:
        """Pairs of classes that are confused most often: the true one, the one named, and how often."""
        table = self.confusion()
        np.fill_diagonal(table, 0)
        order = np.argsort(-table, axis=None, kind="stable")[:MOST_CONFUSED]
        pairs = [(int(i // len(table)), int(i % len(table))) for i in order]
        return [(true, named, int(table[true, named])) for true, named in pairs if table[true, named]]

    def further_scores(self) -> dict[str, Any]:
        """Scores beside loss and accuracy.

        Returns:
            `balanced_accuracy` (mean recall), `f1` (mean over the classes), `auc` (mean over the classes, each against the rest) and
            `recall`, one value per class and None for a class without rows.
        """
        table = self.confusion().astype(np.float64)
        right, actual, named = table.diagonal(), table.sum(1), table.sum(0)
        there = actual > 0
        recall = right / np.where(there, actual, 1)
        found: dict[str, Any] = {
            "balanced_accuracy": float(recall[there].mean()),
            "f1": float((2 * right / np.maximum(1, actual + named))[there].mean()),
        }
        areas = [_area(self.scores[:, c], self.target == c) for c in np.flatnonzero(there)]
        if there.sum() > 1 and np.isfinite(self.scores).all():
            found["auc"] = float(np.mean(areas))
        return found | {"recall": [float(r) if t else None for r, t in zip(recall, there, strict=True)]}


@dataclass(frozen=True)
class NumberAnswers:
    """The answers of a network that names one number per row, in the target's own unit but for a constant.

    Attributes:
        target: The true value of each row.
        answer: The value named for each row.
    """

    target: Array
    answer: Array
    classes: None = None

    def most_confused(self) -> list[tuple[int, int, int]]:
        """Nothing: there are no classes."""
        return []

    def further_scores(self) -> dict[str, Any]:
        """Scores beside loss and rmse.

        Returns:
            `mae`, `error90` (nine in ten errors are no larger), `r2`, and `spread`, the standard deviation of the target.

        Example:
            >>> NumberAnswers(np.array([0.0, 2.0]), np.array([0.0, 1.0])).further_scores()
            {'mae': 0.5, 'error90': 1.0, 'r2': 0.5, 'spread': 1.0}
        """
        error, spread = self.answer - self.target, float(self.target.std())
        explained = {"r2": 1 - float(np.square(error).mean()) / spread**2} if spread > 0 else {}
        sizes = np.abs(error)
        return {
            "mae": float(sizes.mean()),
            "error90": float(np.quantile(sizes, 0.9, method="higher")),
            **explained,
            "spread": spread,
        }


Answers = ClassAnswers | NumberAnswers


@torch.no_grad()
def answers_of(model: nn.Module, batches: Iterable[Any], loss: Loss) -> Answers | None:
    """The answers of a network in eval mode.

    Args:
        model: The network.
        batches: The rows, each once.
        loss: Says what the outputs and the targets are.

    Returns:
        The answers; None where a row has several targets, where the loss does not say what they are, or where there are too many.
    """
    if loss.task is None or (loss.several_labels and loss.probabilities is None):
        return None
    outputs, targets, values = [], [], 0
    with evaluating(model):
        for batch in batches:
            output, target = loss.read(model, batch)
            classes = loss.task == "classification" and not loss.several_labels
            fits = target.ndim == 1 and output.ndim == 2 if classes else target.numel() == output.numel() == len(target)
            values += output.numel()
            if not fits or values > MOST_VALUES:
                return None
            if loss.task == "classification" and loss.probabilities is not None:
                output = loss.probabilities(output.double())
            if loss.several_labels:  # a single one: there or not
                output, target = torch.stack([1 - output.reshape(-1), output.reshape(-1)], 1), target.reshape(-1)
            outputs.append(output.double().cpu())
            targets.append(target.cpu())
    if not outputs:
        return None
    said, true = torch.cat(outputs).numpy(), torch.cat(targets).numpy()
    if loss.task == "classification":
        return ClassAnswers(true.astype(np.int64), said, loss.probabilities is not None)
    return NumberAnswers(loss.unit * true.reshape(-1).astype(np.float64), loss.unit * said.reshape(-1))


def _area(scores: Array, positive: Array) -> float:
    """Area under the ROC curve: the probability that a positive row scores above another one, ties counted as one half."""
    from scipy.stats import rankdata  # here: it is slow to import, and only the end of a run needs it

    inside, outside = int(positive.sum()), int((~positive).sum())
    if not inside or not outside:
        return float("nan")
    ranks = rankdata(scores)
    return float(ranks[positive].sum() - inside * (inside + 1) / 2) / (inside * outside)
