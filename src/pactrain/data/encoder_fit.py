"""Learning how the columns of a table become features: cells are read as all rows show, the rest is fitted on the training rows."""

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.data.cell_values import PLAIN, Reading, check_size, each_value, reading_of
from pactrain.data.encoder import (
    PARTS,
    Categorical,
    Encoder,
    Kind,
    LeftOut,
    Numeric,
    Text,
    category,
    embedded,
    target_numbers,
)
from pactrain.data.identifiers import is_named_identifier, why_left_out
from pactrain.runtime.errors import DataError

MOST_CATEGORIES = 50
"""Categories of one column that have a feature of their own, the most frequent ones."""

GROWING = ("year", "day")
"""Parts of a date that later rows have never been seen with."""


def fit_encoder(
    frame: pd.DataFrame,
    target: "pd.Series[Any]",
    train: NDArray[Any],
    kind: Kind,
    *,
    text: Mapping[str, str] | None = None,
    keep: tuple[str, ...] = (),
    time: str | None = None,
) -> Encoder:
    """Learn the encoding of a table.

    Args:
        frame: The columns to learn from, of all rows.
        target: The column to predict.
        train: Numbers of the rows that are learned from.
        kind: What kind of target it is.
        text: Columns of free text, each with its encoder.
        keep: Columns to use although they look like identifiers.
        time: A column by which later rows were held out; what only grows in it is left out.
    """
    text = text or {}
    fitted = [
        part
        for name in frame.columns
        if name not in text
        for part in _fit_column(frame[name], train, keep=name in keep, growing=name != time)
    ]
    texts = tuple(Text(name, used, embedded(frame[name].iloc[:1], used).shape[1]) for name, used in text.items())
    numeric = tuple(c for c in fitted if isinstance(c, Numeric))
    categorical = tuple(c for c in fitted if isinstance(c, Categorical))
    left_out = tuple(c for c in fitted if isinstance(c, LeftOut))
    if not numeric and not categorical and not texts:
        reasons = "; ".join(f"{c.name!r}: {c.why}" for c in left_out) or "there is none beside the target"
        raise DataError(f"no column is left to learn from ({reasons}); --keep NAME uses one all the same")
    reading = (reading_of(target, "the target") if kind == "regression" else None) or Reading("number", "1234.5")
    classes, mean, std = _target_scale(target, train, kind, reading)
    return Encoder(
        str(target.name), kind, numeric, categorical, left_out, classes, mean, std, texts, target_reading=reading
    )


def _fit_column(
    column: "pd.Series[Any]", train: NDArray[Any], *, keep: bool, growing: bool
) -> list[Numeric | Categorical | LeftOut]:
    """The features of one column, or the reason why it has none."""
    name = str(column.name)
    seen = column.iloc[train]
    if growing and (fractions := _fractions(seen)) is not None:
        found = _fit_numbers(name, fractions, "", Reading("number", PLAIN))
        return [found] if found is not None else [LeftOut(name, "the same in every row")]
    if column.dtype == object and column.map(pd.api.types.is_list_like).any():
        return [LeftOut(name, "its cells hold several values")]
    reading = reading_of(column, way_out=f", or leave the column out with --drop {shlex.quote(name)}")
    why = None if keep else why_left_out(seen, reading)
    if why is not None:
        return [LeftOut(name, why)]
    if reading is None or (not keep and reading.kind == "number" and is_named_identifier(seen)):
        known = _fit_categories(seen)
        return [known] if len(known.categories) > 1 else [LeftOut(name, "the same in every row")]
    values = reading.values(seen)
    if reading.kind == "date":
        wanted = {part: of(values) for part, of in PARTS.items() if growing or part not in GROWING}
        parts = [_fit_numbers(name, np.asarray(v, dtype=np.float64), part, reading) for part, v in wanted.items()]
    else:
        parts = [_fit_numbers(name, values.to_numpy(), "", reading)] if growing else []
    used: list[Numeric | Categorical | LeftOut] = [part for part in parts if part is not None]
    why = "the same in every row" if growing else "it orders the rows"
    return used or [LeftOut(name, why if values.notna().any() else "empty")]


def _fractions(seen: "pd.Series[Any]") -> NDArray[np.float64] | None:
    """The values of a column of finite floats that are not all whole: neither dates nor identifiers, so nothing else is tried."""
    if seen.dtype != np.float64:
        return None
    values = seen.to_numpy()
    known = values[~np.isnan(values)]
    return values if np.isfinite(known).all() and (known != np.round(known)).any() else None


def _fit_categories(column: "pd.Series[Any]") -> Categorical:
    counts = Counter(each_value(column, category))
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
    return Categorical(str(column.name), tuple(sorted(frequent)), len(counts))


def _fit_numbers(name: str, values: NDArray[np.float64], part: str, reading: Reading) -> Numeric | None:
    """One feature; None if it is the same in every row."""
    check_size(values, f"column {name!r}")
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    median = float(np.median(known))
    filled = np.where(np.isnan(values), median, values)
    std = float(filled.std())
    differ = filled.min() < filled.max() and std > 0
    missing = len(values) - len(known)
    return Numeric(name, median, float(filled.mean()), std, part, reading, missing) if differ else None


def _target_scale(
    target: "pd.Series[Any]", train: NDArray[Any], kind: Kind, reading: Reading
) -> tuple[tuple[str, ...], float, float]:
    if kind == "classification":
        classes = tuple(sorted(set(each_value(target, category)), key=_natural))
        if len(classes) < 2:
            raise DataError(f"the target {target.name!r} has a single class, {classes[0]!r}: there is nothing to learn")
        return classes, 0.0, 1.0
    values = target_numbers(target, reading)[train]
    check_size(values, f"the target {target.name!r}")
    std = float(values.std())
    if std == 0:
        raise DataError(f"the target {target.name!r} is {values[0]:g} in every training row: there is nothing to learn")
    return (), float(values.mean()), std


def _natural(name: str) -> tuple[int, float, str]:
    """Sort numbers by their size, before texts."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
