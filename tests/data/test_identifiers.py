"""Columns that cannot help to predict new rows are left out with their reason; all others stay."""

import numpy as np
import pandas as pd
import pytest

from pactrain.data.cell_values import reading_of
from pactrain.data.identifiers import is_named_identifier, why_left_out

N = 40
SHUFFLED = np.random.default_rng(0).permutation(N) + 1000


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("a", [""] * N, "empty"),
        ("a", range(N), "row numbers"),
        ("a", range(1, N + 1), "row numbers"),
        ("customer_id", SHUFFLED, "an identifier"),
        ("customerId", SHUFFLED, "an identifier"),
        ("a", [f"Jane Doe {i}" for i in range(N)], "different in most rows: a name, an identifier, or numbers in a form that is not known"),
        ("a", [f"once upon a time in {i}" for i in range(N)], "free text; --text reads it"),
        ("a", [f"{1 + i % 12} May {1990 + i}" if i % 2 else f"{1990 + i}/03/{1 + i % 28}" for i in range(N)], "dates in several forms, or in none that is known; write them as 2024-12-31"),
        ("amount", SHUFFLED, None),
        ("customer_id", SHUFFLED % 7, None),
        ("a", ["red", "green"] * (N // 2), None),
        ("a", np.linspace(0, 1, N), None),
    ],
)  # fmt: skip
def test_columns_and_their_reasons(name: str, cells: object, reason: str | None) -> None:
    column = pd.Series(list(cells), name=name)  # type: ignore[call-overload]
    assert why_left_out(column, reading_of(column, "the column", "")) == reason


def test_few_rows_prove_nothing_about_a_column() -> None:
    names = pd.Series([f"name {i}" for i in range(12)], name="a")
    assert why_left_out(names, reading_of(names, "the column", "")) is None


def test_names_of_identifiers() -> None:
    named = [
        n
        for n in ("id", "ID", "row_no", "orderID", "idea", "valid", "paid")
        if is_named_identifier(pd.Series([1, 2], name=n))
    ]
    assert named == ["id", "ID", "row_no", "orderID"]
