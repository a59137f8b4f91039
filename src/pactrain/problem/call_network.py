"""The network's output on a batch: how a batch is split into inputs and target."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from pactrain.problem.graph_nodes import Nodes
from pactrain.runtime.errors import DataError

Predict = Callable[..., Any]
"""Calls the network; may be called several times for one batch."""

TARGET_KEYS = ("labels", "label", "target", "targets", "y")
"""Keys under which the target of a mapping is looked for, in this order."""


def predict_batch(predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
    """Call the network on a batch `(inputs, target)`, `(input, input, …, target)` or a mapping with a target key."""
    if isinstance(batch, Mapping):
        key = next((k for k in TARGET_KEYS if k in batch), None)
        if key is None:
            raise DataError(
                f"a batch is a mapping with keys {sorted(map(str, batch))} and none of them is a target "
                f"({', '.join(TARGET_KEYS)}); rename it, or pass loss=callable(predict, batch)"
            )
        output = predict(**{k: v for k, v in batch.items() if k != key})
        return scores_of(output), batch[key]
    if isinstance(batch, Nodes):
        scores = scores_of(predict(batch.x, batch.edge_index))
        return (scores[batch.nodes] if len(scores) else scores), batch.y
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        raise DataError(
            f"a batch must be (inputs, target) or a mapping, not {type(batch).__name__}; write (X, y) in round brackets, "
            "since a list is a list of batches, or pass loss=callable(predict, batch) to read a batch your way"
        )
    *inputs, target = batch
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        return scores_of(predict(**inputs[0])), target
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        return scores_of(predict(*inputs[0])), target
    return scores_of(predict(*inputs)), target


def no_answer(*_: Any, **__: Any) -> Tensor:
    """Stands for the network where the target of a batch is all that is wanted."""
    return torch.zeros(0, device="cpu")


def parts_of(batch: Any) -> list[Any]:
    """The parts of a batch; none if it is neither a mapping nor a tuple or list."""
    if isinstance(batch, Mapping):
        return list(batch.values())
    return list(batch) if isinstance(batch, (tuple, list)) else []


def check_plain(part: Tensor, what: str) -> None:
    """Raise DataError unless a tensor holds a number at each place."""
    if part.layout is not torch.strided or part.is_nested or part.is_quantized or part.is_meta:
        raise DataError(
            f"{what} is a sparse, nested, quantised or meta tensor; pass a plain one, such as its to_dense()"
        )


def has_rows(batch: Any) -> bool:
    """True if all parts of a batch are tensors with one row per example."""
    parts = parts_of(batch)
    return bool(parts) and all(isinstance(p, Tensor) and p.ndim and len(p) == len(parts[0]) for p in parts)


def rows_at(batch: Any, at: slice) -> Any:
    """Some rows of a batch that `has_rows`."""
    if isinstance(batch, Mapping):
        return {key: part[at] for key, part in batch.items()}
    return tuple(part[at] for part in batch)


def scores_of(output: Any) -> Tensor:
    """The tensor in what a network returned."""
    scores = (
        output["logits"] if isinstance(output, Mapping) and "logits" in output else getattr(output, "logits", output)
    )
    if not isinstance(scores, Tensor):
        raise DataError(
            f"the network returned {type(output).__name__}, not a tensor; pass loss=callable(predict, batch) to read it"
        )
    return scores


def integers_beside_inputs(batch: Any) -> bool:
    """True if the last part of a batch, or what stands under a target key, is a tensor of whole numbers."""
    parts = parts_of(batch)
    target = parts[-1] if parts else getattr(batch, "y", None)
    if isinstance(batch, Mapping):
        target = next((batch[k] for k in TARGET_KEYS if k in batch), target)
    return isinstance(target, Tensor) and not target.is_floating_point()
