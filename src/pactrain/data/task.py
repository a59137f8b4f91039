"""A supervised learning task as arrays, with the encoder that treats new rows in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pactrain.certification.statement import Caveat, Label
from pactrain.data.encoder import Encoder, Kind

STANDARDISED = Caveat("the features were standardised with statistics of the same training rows", "estimated")

ENCODED = Caveat(
    "how columns are encoded (means, categories, missing values, classes) was learned from the same training rows; with "
    "prior_data it is learned from the prior's rows alone, with a progressive certificate from the first half of the rows",
    "estimated",
)


def scaled_target(std: float | None, prior_data: float) -> Caveat:
    """What is said of a regression target standardised by the training rows, or by the prior's; `std` is None for several targets."""
    shown = "" if std is None else f", {std:,.0f}" if 1000 <= std < 1e12 else f", {std:.4g}"
    rows: str
    label: Label
    rows, label = ("prior's", "certified") if prior_data else ("training", "estimated")
    return Caveat(f"the loss is in units of the target's standard deviation in the {rows} rows{shown}", label)


LONGEST = 400
"""Characters of a text that are shown."""


@dataclass(frozen=True)
class RowLabels:
    """What people know rows by: the number of each, and free texts, which cannot be told from features.

    Attributes:
        kind: What is numbered: "row" of a file, counted from 1, or "node" of a graph, counted from 0.
        numbers: A number for each row, in the order of the data.
        texts: Columns of free text, in the same order.
    """

    kind: Literal["row", "node"]
    numbers: NDArray[Any]
    texts: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __call__(self, at: int) -> dict[str, str]:
        """The labels of one row."""
        texts = {name: str(column[at]) for name, column in self.texts.items()}
        shown = {name: text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for name, text in texts.items()}
        return {self.kind: str(self.numbers[at]), **shown}


@dataclass(frozen=True)
class Task:
    """Training and test arrays, encoded; the encoder tells what the numbers mean.

    Attributes:
        labels: Of the test rows, or of the training rows if there are none.
    """

    name: str
    encoder: Encoder
    x_train: NDArray[np.float32]
    y_train: NDArray[Any]
    x_test: NDArray[np.float32] | None
    y_test: NDArray[Any] | None
    caveats: tuple[Caveat, ...] = ()
    test_doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    labels: RowLabels | None = None

    @property
    def train(self) -> Any:
        """The training data as `fit` takes it."""
        return self.x_train, self.y_train

    @property
    def test(self) -> Any:
        """The test data as `fit` takes it, None if nothing was held out."""
        return None if self.x_test is None else (self.x_test, self.y_test)

    @property
    def inputs(self) -> int:
        """Number of features."""
        return int(self.x_train.shape[1])

    @property
    def outputs(self) -> int:
        """Number of outputs a network needs."""
        return len(self.encoder.classes) or 1


def task_of(
    name: str,
    encoder: Encoder,
    x: NDArray[np.float32],
    y: NDArray[Any],
    train: NDArray[Any],
    test: NDArray[Any],
    *,
    caveats: tuple[Caveat, ...],
    prior_data: float = 0.0,
) -> Task:
    """A task from encoded arrays and row numbers."""
    if encoder.kind == "regression":
        caveats = (*caveats, scaled_target(encoder.target_std, prior_data))
    x_test, y_test = (x[test], y[test]) if len(test) else (None, None)
    return Task(name, encoder, x[train], y[train], x_test, y_test, caveats)


__all__ = [
    "ENCODED",
    "STANDARDISED",
    "Kind",
    "RowLabels",
    "Task",
    "scaled_target",
    "task_of",
]
