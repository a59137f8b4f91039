"""What a budget says."""

import math

import pytest

from pactrain.runtime.errors import PactrainError
from pactrain.training.budget import Budget, parse_budget


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, Budget()),
        (60, Budget(seconds=60.0)),
        ("90s", Budget(seconds=90.0)),
        (" 5 M ", Budget(seconds=300.0)),
        ("1.5h", Budget(seconds=5400.0)),
        ("100 epochs", Budget(epochs=100)),
        ("7e", Budget(epochs=7)),
    ],
)
def test_budgets_as_people_write_them(text: str | float | None, meant: Budget) -> None:
    assert parse_budget(text) == meant


@pytest.mark.parametrize("text", ["soon", "5x", "-3s", "0", "1.5 epochs", "1..2s", math.nan])
def test_what_is_no_budget(text: str | float) -> None:
    with pytest.raises(PactrainError, match="write seconds"):
        parse_budget(text)


def test_shares() -> None:
    assert Budget(100.0, 10).part(0.25) == Budget(25.0, 2)
