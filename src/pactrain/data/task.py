"""A supervised learning task as arrays, with what is needed to treat new rows alike."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pactrain.errors import DataError

Kind = Literal["classification", "regression"]


@dataclass(frozen=True)
class Task:
    """Training and test arrays; targets are class indices, or numbers divided by `target_std` after `target_mean`."""

    name: str
    kind: Kind
    x_train: NDArray[np.float32]
    y_train: NDArray[Any]
    x_test: NDArray[np.float32] | None
    y_test: NDArray[Any] | None
    classes: tuple[str, ...] = ()
    target_mean: float = 0.0
    target_std: float = 1.0
    encoder: dict[str, Any] | None = None
    caveats: tuple[str, ...] = ()
    described: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        """Number of features."""
        return int(self.x_train.shape[1])

    @property
    def outputs(self) -> int:
        """Number of outputs a network needs."""
        return len(self.classes) if self.kind == "classification" else 1


STANDARDISED = "the features were standardised with statistics of the same training rows"


def split_rows(n: int, target: NDArray[Any] | None, fraction: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Row numbers for training and test; stratified by `target` where every class has at least two rows."""
    from sklearn.model_selection import train_test_split

    if not 0 <= fraction < 1:
        raise DataError(f"the test fraction is {fraction}; it must be at least 0 and below 1")
    rows = np.arange(n)
    if fraction == 0:
        return rows, rows[:0]
    if n < 4:
        raise DataError(f"{n} rows are too few to hold some out for a test; use --test-fraction 0")
    if target is not None:
        counts = np.unique(target, return_counts=True)[1]
        room = min(int(n * fraction), int(n * (1 - fraction))) >= len(counts)
        target = target if counts.min() >= 2 and room else None
    train, test = train_test_split(rows, test_size=fraction, random_state=seed, stratify=target)
    return train, test
