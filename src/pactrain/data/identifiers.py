"""Finding columns that cannot help to predict new rows: identifiers, names, row numbers, free text."""

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd

from pactrain.data.cell_values import Reading, is_missing

FEW_ROWS = 20
"""Below this number of rows any column of texts is taken as categories."""

FREE_TEXT = 4
"""Words in a cell from which on a column of different texts is free text."""

NAMED = re.compile(r"(?i:(.*[_ .-])?(id|uuid|guid|index|idx|rowid|key|nr|no)\.?)|.*[a-z](Id|ID)|Unnamed: \d+")
"""Names of columns of identifiers: id, customer_id, customerId."""


def why_left_out(column: "pd.Series[Any]", reading: Reading | None) -> str | None:
    """The reason why a column is not learned from; None if there is none."""
    present = column[~is_missing(column)]
    if not len(present):
        return "empty"
    if reading is None:
        different = present.astype("str").nunique()
        if len(present) < FEW_ROWS or different <= len(present) / 2:
            return None
        if _are_dates(present):
            return "dates in several forms, or in none that is known; write them as 2024-12-31"
        words = np.mean([len(text.split()) for text in present.astype("str")])
        return (
            "free text; --text reads it"
            if words >= FREE_TEXT
            else "different in most rows: a name, an identifier, or numbers in a form that is not known"
        )
    if reading.kind != "number" or not _different_whole_numbers(reading.tried(present)):
        return None
    if is_named_identifier(column):
        return "an identifier"
    return "row numbers" if _counts_rows(reading.tried(column)) else None


def _are_dates(texts: "pd.Series[Any]") -> bool:
    """True if each of the first cells is a date in some spelling."""
    first = texts.iloc[:FEW_ROWS].astype("str")
    with warnings.catch_warnings(action="ignore"):
        read = pd.to_datetime(first, format="mixed", errors="coerce", utc=True)
    return bool(first.str.contains(r"\d{4}").all() and read.notna().all())


def is_named_identifier(column: "pd.Series[Any]") -> bool:
    """True if the name of a column of whole numbers says that they are identifiers."""
    return bool(NAMED.fullmatch(str(column.name))) and pd.api.types.is_numeric_dtype(column) and _whole(column.dropna())


def _whole(numbers: "pd.Series[Any]") -> bool:
    return bool((numbers == numbers.round()).all())


def _different_whole_numbers(numbers: "pd.Series[Any]") -> bool:
    return numbers.is_unique and _whole(numbers)


def _counts_rows(numbers: "pd.Series[Any]") -> bool:
    """True if the column holds the number of each row in the file, from 0 or 1."""
    start = numbers.to_numpy() - numbers.index.to_numpy()
    return len(numbers) >= FEW_ROWS and start[0] in (0, 1) and bool(np.ptp(start) == 0)
