"""What is measured under noise: values in [0, 1] for each example, whose means a certificate bounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pactrain.bounds.bernstein import bernstein_square
from pactrain.problem.losses import Loss

SMOOTHING = (0.01, 0.05, 0.1, 0.2)
"""Parts of a prediction that are replaced by equal probabilities for all classes, from which the best is taken."""

STAKES = (0.03, 0.06, 0.12, 0.25, 0.35, 0.5, 0.7, 0.9)
"""Values of u in the unexpected Bernstein bound from which the best is taken."""

THRESHOLDS = tuple(4.0**i for i in range(-9, 10))
"""Sizes of an error in regression from which the best is taken."""

ERROR, CROSS_ENTROPY, CLIPPED, LARGE, TRUNCATED = (
    "0-1 error",
    "cross-entropy",
    "clipped loss",
    "large errors",
    "truncated squared error",
)
"""Events of a certificate's budget."""

Place = tuple[float, float]
"""The smoothing or the threshold; u.  Zero where there is no such thing."""

Key = tuple[str, float, float]
"""Event and place."""


@dataclass(frozen=True)
class Measure:
    """Values in [0, 1] for each example at one or several places, from its loss and its score (0-1 error or squared error).

    event:  the event of the budget that pays for a statement about it.
    places: what the statement may choose from, one column of the values each.
    of:     function of losses and scores that gives the columns.
    whole:  True if the values are 0 or 1 and nothing between.
    """

    event: str
    of: Callable[[Tensor, Tensor], Tensor]
    places: tuple[Place, ...] = ((0.0, 0.0),)
    whole: bool = False

    def __call__(self, losses: Tensor, scores: Tensor | None) -> Tensor:
        """The values, in float64: a row per example, a column per place."""
        values = self.of(losses, losses if scores is None else scores).double()
        return values.view(len(losses), len(self.places)).nan_to_num(nan=1.0).clamp(0, 1)


def keys_of(measures: Sequence[Measure]) -> list[Key]:
    """All events with their places, in the order of the columns."""
    return [(measure.event, *place) for measure in measures for place in measure.places]


def measures_for(loss: Loss, classes: int) -> list[Measure]:
    """All measures for a loss; `classes` is 0 where rows have several classes to tell, or none."""
    if loss.task is None:
        return []
    if loss.task == "classification":
        found = [Measure(ERROR, lambda _, errors: errors, whole=bool(classes))]
    else:
        found = [*_by_size()]
    if loss.name == "cross_entropy" and classes:
        return [*found, _smoothed(classes)]
    if (limit := loss.clip) is not None:
        found.append(Measure(CLIPPED, lambda losses, _: losses / limit))
    return found


def smoothed(losses: Tensor, smoothing: float | Tensor, classes: int) -> Tensor:
    """Cross-entropy of predictions of which a part is replaced by equal probabilities: at most ln(classes/smoothing)."""
    return -torch.log((1 - smoothing) * torch.exp(-losses) + smoothing / classes)


def _by_size() -> tuple[Measure, Measure]:
    """Errors above each threshold, and squared errors cut off at its square."""
    places = tuple((t, 0.0) for t in THRESHOLDS)

    def above(_: Tensor, squares: Tensor) -> Tensor:
        return squares[:, None] > squares.new_tensor(THRESHOLDS).square()

    def cut(_: Tensor, squares: Tensor) -> Tensor:
        return squares[:, None] / squares.new_tensor(THRESHOLDS).square()

    return Measure(LARGE, above, places, whole=True), Measure(TRUNCATED, cut, places)


def _smoothed(classes: int) -> Measure:
    """X + κ X² of the smoothed cross-entropy X in units of its largest value, for each smoothing and each u."""

    def values(losses: Tensor, _: Tensor) -> Tensor:
        parts = losses.new_tensor(SMOOTHING)
        squares = losses.new_tensor([bernstein_square(u) for u in STAKES])
        x = (smoothed(losses[:, None], parts, classes) / torch.log(classes / parts))[:, :, None]
        return (x + squares * x.square()) / (1 + squares)

    return Measure(CROSS_ENTROPY, values, tuple((part, u) for part in SMOOTHING for u in STAKES))
