"""Work in one pass of vmap, or in a loop."""

import pytest
import torch

from pactrain.runtime.gave_up import Refused, collected
from pactrain.runtime.vmap import Together, rows_of_each, together


def test_from_the_first_refusal_on_there_is_a_loop() -> None:
    calls = []

    def at_once() -> str:
        calls.append("at once")
        if len(calls) > 1:
            raise Refused(AssertionError("no batches, please"))
        return "together"

    either = Together("Sums were", tried=True)
    with collected() as notes:
        assert [either(at_once, lambda: "one by one") for _ in range(4)] == ["together", *["one by one"] * 3]
    assert calls == ["at once"] * 2
    assert not either.tried
    assert len(notes) == 1


def test_what_is_not_to_be_tried_is_not() -> None:
    assert Together("Sums were", tried=False)(pytest.fail, lambda: 1) == 1


def test_errors_of_our_own_surface() -> None:
    def broken() -> int:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        together(broken, "Sums were")


def test_rows_of_one_network_come_after_those_of_the_other() -> None:
    weights, x = torch.tensor([[2.0], [3.0]]), torch.tensor([[1.0], [10.0]])
    assert rows_of_each(lambda w: x * w, weights).tolist() == [[2.0], [20.0], [3.0], [30.0]]
    with pytest.raises(ValueError, match="no dimension for examples"):
        rows_of_each(lambda w: w.sum(), weights)
