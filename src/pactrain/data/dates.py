"""Columns of dates: written as 2024-12-31, with or without a time, they become days since 1970."""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError

ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?$")
OTHER = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([T ].*)?$")
"""Other ways to write dates: nobody can tell whether 3/4/2024 is in March or in April, so these are not read."""


def is_dates(column: "pd.Series[Any]") -> bool:
    """Whether all that the column holds are dates that can be read in one way only."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    present = column.dropna()
    return bool(len(present)) and all(ISO.match(str(v)) for v in present) and not _unread(present)


def looks_like_dates(column: "pd.Series[Any]") -> bool:
    """Whether most of the texts are dates in some spelling."""
    present = column.dropna()
    return sum(bool(OTHER.match(str(v))) for v in present) > len(present) / 2


def days(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """Days since 1970, NaN where the date is missing; anything else is an error."""
    bad = _unread(column)
    if bad:
        row = bad[0] + 1
        raise DataError(
            f"column {column.name!r} is {column.iloc[bad[0]]!r} in row {row}; it held dates such as 2024-12-31 in training"
        )
    read = (
        _parsed(column).dt.tz_localize(None).to_numpy(dtype="datetime64[s]")
    )  # of seconds: of nanoseconds 1600 and 9999 are out of range
    since = np.asarray(read.astype(np.int64), dtype=np.float64) / 86_400
    return np.where(np.isnat(read), np.nan, since)


def _parsed(column: "pd.Series[Any]") -> "pd.Series[Any]":
    written = column if pd.api.types.is_datetime64_any_dtype(column) else column.astype("str").where(column.notna())
    read: pd.Series[Any] = pd.to_datetime(written, format="ISO8601", errors="coerce", utc=True)
    return read.astype("datetime64[s, UTC]")


def _unread(column: "pd.Series[Any]") -> list[int]:
    return [int(i) for i in np.flatnonzero((_parsed(column).isna() & column.notna()).to_numpy())]
