"""How a batch is split into inputs and target, and what is taken for the network's answer."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pactrain.problem.call_network import has_rows, integers_beside_inputs, parts_of, predict_batch, rows_at, scores_of
from pactrain.runtime.errors import DataError

X, Y = torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 1])


def seen(*args: Any, **kwargs: Any) -> Any:
    """A network that keeps what it was called with, and answers with the first of it."""
    seen.args, seen.kwargs = args, kwargs  # type: ignore[attr-defined]
    return [*args, *kwargs.values()][0]


@pytest.mark.parametrize(
    ("batch", "args", "kwargs"),
    [
        ((X, Y), (X,), {}),
        ([X, X, Y], (X, X), {}),
        (((X, X), Y), (X, X), {}),
        (({"a": X, "b": X}, Y), (), {"a": X, "b": X}),
        ({"a": X, "labels": Y}, (), {"a": X}),
        ({"y": Y, "a": X}, (), {"a": X}),
    ],
)
def test_the_target_is_taken_out_and_the_rest_goes_in(batch: Any, args: Any, kwargs: Any) -> None:
    output, target = predict_batch(seen, batch)
    assert target is Y
    assert output is X
    assert [id(a) for a in seen.args] == [id(a) for a in args]  # type: ignore[attr-defined]
    assert list(seen.kwargs) == list(kwargs)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("batch", "message"),
    [({"a": X}, "none of them is a target"), ((X,), "must be"), (X, "must be .* not Tensor")],
)
def test_batches_without_a_target_are_refused(batch: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        predict_batch(seen, batch)


def test_logits_are_found_in_what_libraries_return() -> None:
    assert scores_of({"logits": X}) is X
    assert scores_of(SimpleNamespace(logits=X, loss=None)) is X
    assert scores_of(X) is X
    with pytest.raises(DataError, match="returned tuple, not a tensor"):
        scores_of((X, X))


def test_parts_and_rows_of_batches() -> None:
    assert parts_of(X) == []
    assert [id(part) for part in parts_of({"a": X, "y": Y})] == [id(X), id(Y)]
    assert has_rows((X, Y))
    assert not has_rows((X, Y[:2]))
    assert not has_rows((X, ["a", "b", "c"]))
    some = rows_at({"a": X, "y": Y}, slice(1, 3))
    assert torch.equal(some["a"], X[1:])
    assert torch.equal(rows_at((X, Y), slice(0, 1))[1], Y[:1])
    assert integers_beside_inputs({"y": Y, "a": X})
    assert not integers_beside_inputs((Y, X))
