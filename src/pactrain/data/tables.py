"""Reading a user's table as a task: finding the target, adding test rows, encoding the columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.data.cell_values import is_missing, is_number, reading_of, row_number
from pactrain.data.encoder import Kind, LeftOut
from pactrain.data.encoder_fit import fit_encoder
from pactrain.data.files import TARGETS, TEST_ROW, ending, read_frame
from pactrain.data.splits import fitting_rows, split_table
from pactrain.data.task import ENCODED, RowLabels, Task, task_of
from pactrain.runtime.errors import DataError, did_you_mean

MAX_CLASSES_OF_INTEGERS = 20
"""An integer target with more different values than this is a quantity, unless the user says otherwise."""


@dataclass(frozen=True)
class Columns:
    """What the user says of the columns of a table, and of how its rows are split.

    Attributes:
        target: The column to predict.
        kind: What kind of target it is; None finds out.
        drop: Columns to leave out.
        keep: Columns to use although they look like identifiers.
        text: Columns of free text, each with the encoder that reads it.
        group: A column whose rows with one value stay together, in training or in the test.
        time: A column by which the latest rows are held out.
        test: A file with the test rows.
    """

    target: str | None = None
    kind: Kind | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    text: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    time: str | None = None
    test: str | Path | None = None


def load_table(path: Path, asked: Columns, *, test_fraction: float, seed: int, prior_data: float = 0.0) -> Task:
    """A task from a CSV, Parquet or NPZ file."""
    frame = _with_test_rows(path, asked)
    asked = _checked(frame, asked, path)
    assert asked.target is not None
    above = int((~frame[TEST_ROW].astype(bool)).sum()) if TEST_ROW in frame.columns else 0
    frame, notes = _without_missing_targets(frame, asked)
    column = frame[asked.target]
    kind = asked.kind or _kind(column)
    classes = asked.target if kind == "classification" else None
    train, test, caveat = split_table(
        frame, classes, group=asked.group, time=asked.time, fraction=test_fraction, seed=seed
    )
    unused = [name for name in (asked.target, *asked.drop, asked.group, TEST_ROW) if name in frame.columns]
    for name in unused:
        del frame[name]  # in place: a copy of the others may be as large as the file
    encoder = fit_encoder(
        frame, column, fitting_rows(train, prior_data, seed), kind, text=asked.text, keep=asked.keep, time=asked.time
    )
    given = [LeftOut(name, "--drop") for name in asked.drop] + (
        [LeftOut(asked.group, "--group")] if asked.group else []
    )
    encoder = replace(encoder, left_out=(*encoder.left_out, *given))
    encoded = (ENCODED,) if not prior_data and (encoder.numeric or encoder.categorical) else ()
    caveats = encoded + ((caveat,) if caveat is not None else ())
    x, y = encoder.features(frame), encoder.targets(column)
    labels = _labels(frame, test if len(test) else train, above, [text.name for text in encoder.text])
    del frame, column  # before the rows are copied once more
    task = task_of(path.name, encoder, x, y, train, test, caveats=caveats, prior_data=prior_data)
    doubts = (caveat.reason,) if caveat is not None and caveat.label == "heuristic" else ()
    return replace(task, notes=tuple(notes), test_doubts=doubts, labels=labels)


def _labels(frame: pd.DataFrame, rows: NDArray[Any], above: int, texts: list[str]) -> RowLabels:
    """Numbers of rows as their own file has them, and their texts; `above` rows of another file stand before them."""
    return RowLabels(
        "row", frame.index.to_numpy()[rows] + 1 - above, {name: frame[name].to_numpy()[rows] for name in texts}
    )


def _with_test_rows(path: Path, asked: Columns) -> pd.DataFrame:
    """The rows of the file, and those of the test file below them, marked."""
    frame = read_frame(path, tuple(asked.text))
    if asked.test is None:
        return frame
    if TEST_ROW in frame.columns:
        raise DataError(f"{path.name} has test rows of its own; --test goes with a file that has none")
    texts = tuple(str(name) for name in frame.columns if not is_number(frame[name]))
    test = read_frame(Path(asked.test), texts)
    absent = [name for name in frame.columns if name not in test.columns and name not in asked.drop]
    if absent:
        raise DataError(f"{Path(asked.test).name} lacks the column {absent[0]!r} that {path.name} has")
    below = test[[name for name in frame.columns if name in test.columns]].assign(**{TEST_ROW: True})
    return pd.concat([frame.assign(**{TEST_ROW: False}), below], ignore_index=True)


def _checked(frame: pd.DataFrame, asked: Columns, path: Path) -> Columns:
    """What was asked for, the target found where it can be; raises DataError for columns that are not there."""
    target = asked.target
    if target is None and ending(path) == ".npz":
        target = next((name for name in TARGETS if name in frame.columns), None)
    if target is None:
        raise DataError(f"say which column is to be predicted: --target NAME; {path.name} has {_listed(frame.columns)}")
    others = (*asked.drop, *asked.keep, *asked.text, *filter(None, (asked.group, asked.time)))
    for name in (target, *others):
        if name not in frame.columns:
            close = did_you_mean(name, map(str, frame.columns))
            raise DataError(f"{path.name} has no column {name!r}{close}; it has {_listed(frame.columns)}")
    if target in others:
        raise DataError(f"the column {target!r} is the target and so cannot be read as free text, left out or split by")
    if TEST_ROW in frame.columns and (asked.group or asked.time):
        raise DataError("--group and --time split the rows of one file; here the test rows are given")
    return replace(asked, target=target)


def _without_missing_targets(frame: pd.DataFrame, asked: Columns) -> tuple[pd.DataFrame, list[str]]:
    """Rows that have a target, and what is said of the others."""
    column = frame[asked.target]
    missing = column.isna() if asked.kind == "classification" else is_missing(column)
    if asked.kind is None and not is_number(column) and reading_of(column[~missing], "the target") is None:
        missing = column.isna()  # "none" and "-" may be classes
    if not missing.any():
        return frame, []
    if missing.all():
        raise DataError(f"the target {asked.target!r} is missing in every row")
    first = row_number(column, int(np.flatnonzero(missing.to_numpy())[0]))
    note = (
        f"The target {asked.target!r} is missing in {int(missing.sum())} of {len(frame)} rows, first in row {first}: they are "
        "not used."
    )
    frame, kept = frame[~missing], column[~missing]
    whole = pd.api.types.is_float_dtype(kept) and bool(
        (kept == kept.round()).all()
    )  # pandas has integers with gaps as floats
    return frame.assign(**{str(asked.target): kept.astype("int64") if whole else kept}), [note]


def _kind(column: "pd.Series[Any]") -> Kind:
    if is_number(column):
        whole = pd.api.types.is_integer_dtype(column) and column.nunique() <= MAX_CLASSES_OF_INTEGERS
        return "classification" if whole or column.isin((0, 1)).all() else "regression"
    reading = reading_of(column, "the target")
    truth = column.dtype == object and column.map(lambda value: isinstance(value, bool)).all()
    return "classification" if truth or reading is None or reading.kind == "date" else "regression"


def _listed(columns: Any) -> str:
    names = [repr(str(c)) for c in columns if c != TEST_ROW]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
