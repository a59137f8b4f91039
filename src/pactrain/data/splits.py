"""Splitting the rows of a data set: into training and test rows, and those of the training rows that an encoding is learned from."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.certification.statement import Caveat
from pactrain.data.cell_values import each_value, reading_of, row_number
from pactrain.data.encoder import category
from pactrain.data.files import TEST_ROW
from pactrain.runtime.errors import DataError

STRATIFIED = Caveat(
    "held-out rows were chosen class by class, so what they prove holds for data with the same shares of the classes",
    "certified",
)
GROUPED = Caveat(
    "rows of one group depend on each other, and the bounds count rows as independent examples", "heuristic"
)
ORDERED = Caveat(
    "held-out rows are later than the training rows; the bounds speak of data like the training rows, from the same time",
    "heuristic",
)
OWN_TEST = Caveat(
    "the test rows come from a file or part of their own: their bound holds for data like these", "certified"
)


def fitting_rows(train: NDArray[Any], prior_data: float, seed: int) -> NDArray[Any]:
    """The training rows that an encoding may be learned from: those that a prior is trained on, if it has any of its own."""
    if not 0 < prior_data < 1:
        return train
    from pactrain.problem.batches import split_numbers  # here: reading a table needs no torch
    from pactrain.runtime.seeds import prior_seed

    first, _ = split_numbers(len(train), prior_data, prior_seed(seed))
    return train[first.numpy()] if len(first) else train


def split_rows(n: int, target: NDArray[Any] | None, fraction: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Row numbers for training and test; stratified by `target` where every class has at least two rows."""
    from sklearn.model_selection import train_test_split

    if not 0 <= fraction < 1:
        raise DataError(f"the test fraction is {fraction}; it must be at least 0 and below 1")
    rows = np.arange(n)
    if fraction == 0:
        return rows, rows[:0]
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed is {seed}; it must be at least 0 and below 2³²")
    if n < 4:
        raise DataError(f"{n} rows are too few to hold some out for a test; use --test-fraction 0")
    if target is not None:
        target = pd.factorize(target, sort=True)[0]
        counts = np.bincount(target)
        room = min(int(n * fraction), int(n * (1 - fraction))) >= len(counts)
        target = target if counts.min() >= 2 and room else None
    try:
        train, test = train_test_split(rows, test_size=fraction, random_state=seed, stratify=target)
    except ValueError as error:
        raise DataError(f"{n} rows cannot be split with a test fraction of {fraction}: {error}") from None
    return train, test


def split_table(
    frame: pd.DataFrame, classes: str | None, *, group: str | None, time: str | None, fraction: float, seed: int
) -> tuple[NDArray[Any], NDArray[Any], Caveat | None]:
    """Row positions for training and test, and what the certificate says of the split.

    Args:
        frame: The table; a column `TEST_ROW` marks test rows of a file of their own.
        classes: The column whose classes have the same shares in both parts; None for regression.
        group: A column whose rows with one value stay together.
        time: A column by which the latest rows are held out.
        fraction: Part of the rows that is held out.
        seed: Decides which.
    """
    rows = np.arange(len(frame))
    if TEST_ROW in frame.columns:
        held_out = frame[TEST_ROW].to_numpy(dtype=bool)
        if held_out.all() or not held_out.any():
            raise DataError("all rows with a target are training rows, or all are test rows")
        return rows[~held_out], rows[held_out], OWN_TEST
    if (group or time) and not fraction:
        raise DataError("--group and --time say which rows are held out; with --test-fraction 0 none are")
    if group is not None:
        groups = pd.Series(each_value(frame[group], category))
        _, held_out_groups = split_rows(groups.nunique(), None, fraction, seed)
        held_out = groups.isin(groups.unique()[held_out_groups]).to_numpy()
        return rows[~held_out], rows[held_out], GROUPED
    if time is not None:
        order = np.argsort(_moments(frame[time]), kind="stable")
        train = len(rows) - int(np.ceil(fraction * len(rows)))
        return np.sort(order[:train]), np.sort(order[train:]), ORDERED
    strata = None if classes is None else each_value(frame[classes], category)
    train_rows, test_rows = split_rows(len(frame), strata, fraction, seed)
    return train_rows, test_rows, STRATIFIED if strata is not None and len(test_rows) else None


def _moments(column: "pd.Series[Any]") -> NDArray[Any]:
    """A column of times as something that can be sorted."""
    reading = reading_of(column)
    if reading is None:
        raise DataError(f"--time {column.name}: the column holds neither dates nor numbers")
    values = reading.values(column)
    if values.isna().any():
        raise DataError(
            f"--time {column.name}: row {row_number(column, int(np.flatnonzero(values.isna())[0]))} is empty"
        )
    return values.to_numpy()
