"""Checks of arguments: numpy's numbers count as numbers, and what is refused is named."""

from typing import Any

import numpy as np
import pytest

from pactrain import PactrainError
from pactrain.runtime.arguments import SEEDS, check_callables, check_seed, check_share, check_texts, check_whole


@pytest.mark.parametrize("value", [0.25, np.float32(0.25), np.float64(0.25)])
def test_shares_become_plain_numbers(value: Any) -> None:
    found = check_share("delta", value, "it is a probability")
    assert type(found) is float
    assert found == 0.25


@pytest.mark.parametrize("value", [0, 1, -0.5, float("nan"), True, "0.5", None])
def test_what_is_no_share_is_named(value: Any) -> None:
    with pytest.raises(PactrainError, match=r"^delta=.* must lie strictly between 0 and 1; it is a probability$"):
        check_share("delta", value, "it is a probability")


def test_seeds_are_whole_numbers_that_torch_takes() -> None:
    assert type(check_seed(np.int64(7))) is int
    assert [check_seed(seed) for seed in (0, -SEEDS, SEEDS - 1)] == [0, -SEEDS, SEEDS - 1]
    for odd in (SEEDS, 1.0, True, "1"):
        with pytest.raises(PactrainError, match="seed="):
            check_seed(odd)


def test_whole_numbers_have_limits() -> None:
    check_whole("accumulate", 1, 1)
    with pytest.raises(PactrainError, match=r"accumulate=0 must be a whole number, at least 1$"):
        check_whole("accumulate", 0, 1)
    with pytest.raises(PactrainError, match=r"at least 1 and at most 10$"):
        check_whole("accumulate", 11, 1, 10)


def test_one_text_is_not_several() -> None:
    check_texts("drop", ["a", "b"], str, '"a"')
    check_callables("callbacks", [print], "print")
    for odd in ("ab", 3, [1]):
        with pytest.raises(PactrainError, match=r"drop.*write drop=\[\"a\"\]"):
            check_texts("drop", odd, str, '"a"')
        with pytest.raises(PactrainError, match="callbacks"):
            check_callables("callbacks", odd, "print")
