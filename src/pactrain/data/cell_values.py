"""How the cells of a column are read as numbers, dates or durations: decided once per column, then applied to new rows.

Numbers may be written 1234.5, 1,234.5, 1.234,5, 3,5, 12%, $12 or (12).  Dates may be written in any of `DAYS`, with or without a
time of day.  Durations are what pandas reads as such (01:23:45, 2 days, 1h 30m).  Everything else is text.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError

MOSTLY = 0.9
"""A column of texts of which at least this part can be read as numbers or dates holds these, with mistakes among them."""

NO_VALUE = frozenset(
    ("", "?", "-", "--", "—", ".", "na", "n/a", "n.a.", "nan", "nat", "null", "none", "missing", "unknown")
)
"""Words that stand for a missing number or date, in any case."""

MANY = 10_000
"""Cells from which on it pays to look for equal ones first."""

LARGEST = 1e150
"""Size of numbers whose squares can still be added up."""

DAYS = (
    "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y",
    "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%b %Y", "%B %Y", "%m/%Y", "%m.%Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
WEEKDAY = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +", re.IGNORECASE)
"""What may stand before a date."""

ISO, COMPACT = "ISO8601", "%Y%m%d"
"""2024-12-31, alone or with a time, and the whole number 20241231."""

PLAIN, THOUSANDS, DECIMAL_COMMA = "1234.5", "1,234.5", "1.234,5"
WRITTEN = {
    PLAIN: r".*",
    THOUSANDS: r"[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?",
    DECIMAL_COMMA: r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?",
}


@dataclass(frozen=True)
class Reading:
    """What the cells of a column are, and how they are written."""

    kind: Literal["number", "date", "duration"]
    form: str = ""

    def values(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """Numbers, seconds or moments in UTC; missing where the cell is.

        Raises:
            DataError: A cell cannot be read in this way, or a number is infinite.
        """
        if self.kind == "number" and column.dtype == np.float64 and not np.isinf(column.to_numpy()).any():
            return column  # as nearly all are: the checks below cost most where there are many columns
        read = self.tried(column)
        bad = np.flatnonzero((read.isna() & ~is_missing(column)).to_numpy())
        if len(bad):
            as_in = (
                f" such as {self.form}" if self.kind == "number" else f" written as {self.form}" if self.form else ""
            )
            raise DataError(
                f"column {column.name!r} is {column.iloc[bad[0]]!r} in row {row_number(column, bad[0])}; "
                f"it held {self.kind}s{as_in} in training"
            )
        if self.kind != "date" and (infinite := np.flatnonzero(np.isinf(read.to_numpy(dtype=np.float64)))).size:
            raise DataError(
                f"column {column.name!r} is infinite in row {row_number(column, infinite[0])}; correct it or leave it empty"
            )
        return read

    def tried(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """The values of a column as `values` gives them, but missing where a cell cannot be read."""
        return once_per_text(column, self._read)

    def _read(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        if self.kind == "date":
            return _dates(column, self.form)
        if self.kind == "duration":
            return _durations(column)
        return _numbers(column, self.form)


def reading_of(column: "pd.Series[Any]", what: str = "column", way_out: str = "") -> Reading | None:
    """What a column holds; None for texts.  An error calls it `what` and ends with the `way_out`.

    Raises:
        DataError: It holds numbers or dates but for a few cells.
    """
    if is_number(column):
        return Reading("date", COMPACT) if _compact_dates(column) else Reading("number", PLAIN)
    if pd.api.types.is_datetime64_any_dtype(column):
        return Reading("date", ISO)
    if pd.api.types.is_timedelta64_dtype(column):
        return Reading("duration")
    present = column[~is_missing(column)]
    if not len(present) or isinstance(column.dtype, pd.CategoricalDtype):
        return None
    best, share = Reading("number", PLAIN), 0.0
    for reading in _candidates(present):
        readable = float(reading.tried(present).notna().mean())
        if readable > share:
            best, share = reading, readable
        if share == 1:
            return best
    if share >= MOSTLY:
        _refuse(present, best, what, way_out)
    return None


def is_number(column: "pd.Series[Any]") -> bool:
    """True for real numbers and booleans, whatever their type."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


def is_missing(column: "pd.Series[Any]") -> "pd.Series[bool]":
    """True where a cell is empty, or holds a word for a missing value."""
    if is_number(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column.isna()
    return once_per_text(column, lambda c: c.isna() | c.astype("str").str.strip().str.lower().isin(NO_VALUE))


def once_per_text(column: "pd.Series[Any]", read: Callable[["pd.Series[Any]"], "pd.Series[Any]"]) -> "pd.Series[Any]":
    """Apply `read` to a column cell by cell; where there are few distinct texts, once to each."""
    if len(column) < MANY or not isinstance(column.dtype, pd.StringDtype):
        return read(column)
    codes, texts = pd.factorize(column, use_na_sentinel=False)
    if len(texts) > len(column) / 2:
        return read(column)
    found = read(pd.Series(texts, name=column.name)).take(codes)
    return found.set_axis(column.index)


def each_value(column: "pd.Series[Any]", function: Callable[[Any], Any]) -> NDArray[Any]:
    """What a function says of every cell; it is called once for each value where all have one type, as there are few."""
    codes: NDArray[Any]
    values: Any
    if column.dtype == object:  # there 1, 1.0 and True would be taken for the same
        codes, values = np.arange(len(column)), list(column)
    else:
        codes, values = pd.factorize(column, use_na_sentinel=False)
    found = np.empty(len(values), dtype=object)
    found[:] = [function(value) for value in values]
    return np.asarray(found[codes])


def check_size(values: NDArray[np.float64], what: str) -> None:
    """Refuse numbers whose squares are no numbers of double precision."""
    largest = np.nanmax(np.abs(values), initial=0.0)
    if largest > LARGEST:
        raise DataError(
            f"{what} holds {largest:g}; numbers beyond {LARGEST:g} cannot be scaled: divide the column first"
        )


def row_number(column: "pd.Series[Any]", position: int) -> int:
    """The number of a row as the user counts them: the first below the header is 1."""
    return int(column.index[position]) + 1


def _candidates(present: "pd.Series[Any]") -> Iterator[Reading]:
    """Ways to read texts that might do, in the order in which they are tried."""
    yield Reading("number", PLAIN)
    first = str(present.iloc[0]).strip()
    if not any(sign.isdigit() for sign in first) and not any(sign.isdigit() for sign in str(present.iloc[-1])):
        return
    yield Reading("number", THOUSANDS)
    yield Reading("number", DECIMAL_COMMA)
    yield Reading("date", ISO)
    for cell in {first, str(present.iloc[-1]).strip()}:
        yield from (Reading("date", day + time) for day in DAYS for time in TIMES if _parses(cell, day + time))
    yield Reading("duration")


def _refuse(present: "pd.Series[Any]", best: Reading, what: str, way_out: str) -> None:
    odd = np.flatnonzero(best.tried(present).isna().to_numpy())
    raise DataError(
        f"{what} {present.name!r} holds {best.kind}s except in {len(odd)} rows, first {present.iloc[odd[0]]!r} in row "
        f"{row_number(present, odd[0])}; correct these cells, leave them empty{way_out}"
    )


def _parses(cell: str, form: str) -> bool:
    try:
        datetime.strptime(WEEKDAY.sub("", cell), form)
    except ValueError:
        return False
    return True


def _numbers(column: "pd.Series[Any]", form: str) -> "pd.Series[Any]":
    """Floats, NaN where a cell is missing or no number."""
    if is_number(column):
        return column.astype("float64")
    texts = column.astype("str").str.strip().str.lower().replace({"true": "1", "false": "0"})
    texts = texts.str.replace(r"^\((.+)\)$", r"-\1", regex=True)  # as accountants write losses
    texts = texts.str.removesuffix("%").str.strip(" $€£")
    texts = texts.str.replace(r"(?<=\d)[\s'](?=\d{3}(?!\d))", "", regex=True)  # 1 234 and 1'234
    texts = texts.where(texts.str.fullmatch(WRITTEN[form]))
    if form == THOUSANDS:
        texts = texts.str.replace(",", "")
    elif form == DECIMAL_COMMA:
        texts = texts.str.replace(".", "").str.replace(",", ".")
    return pd.to_numeric(texts.mask(is_missing(column)), errors="coerce").astype("float64")


def _dates(column: "pd.Series[Any]", form: str) -> "pd.Series[Any]":
    """Moments in UTC, of seconds (of nanoseconds 1600 and 9999 are out of range), missing where a cell is no date."""
    if not pd.api.types.is_datetime64_any_dtype(column):
        whole = is_number(column)
        texts = column.astype("Int64").astype("str") if whole else column.astype("str").str.strip()
        texts = texts.str.replace(WEEKDAY, "", regex=True)
        column = texts.mask(column.isna() if whole else is_missing(column))
    with warnings.catch_warnings(action="ignore"):
        read: pd.Series[Any] = pd.to_datetime(column, format=form, errors="coerce", utc=True)
    return read.astype("datetime64[s, UTC]")


def _durations(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Seconds, NaN where a cell is no duration."""
    if not pd.api.types.is_timedelta64_dtype(column):
        texts = column.astype("str").str.strip().mask(is_missing(column))
        texts = texts.str.replace(r"^(\d{1,2}:\d{2})$", r"\1:00", regex=True)
        texts = texts.where(texts.str.fullmatch(r"[+-]?[P\d].*[:A-Za-z].*", na=False))
        with warnings.catch_warnings(action="ignore"):  # of units that pandas will spell differently
            column = pd.to_timedelta(texts, errors="coerce")
    seconds: pd.Series[Any] = column.dt.total_seconds()
    return seconds


def _compact_dates(column: "pd.Series[Any]") -> bool:
    """True for whole numbers that are all dates such as 20241231."""
    known = column.dropna()
    if not len(known) or pd.api.types.is_bool_dtype(column) or not ((known >= 19000101) & (known <= 21001231)).all():
        return False
    return bool((known == known.round()).all()) and bool(_dates(known, COMPACT).notna().all())


def days(moments: "pd.Series[Any]") -> NDArray[np.float64]:
    """Days since 1970, NaN where the moment is missing."""
    read = moments.dt.tz_localize(None).to_numpy(dtype="datetime64[s]")
    return np.where(np.isnat(read), np.nan, read.astype(np.int64) / 86_400)
