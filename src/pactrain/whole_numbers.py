"""Whole numbers where floating-point ones are meant: pixels from 0 to 255, counts, prices."""

from typing import Any

import torch
from torch import Tensor, nn

from pactrain.batches import Batches, TensorBatches
from pactrain.losses import AnyLoss, Loss, per_example
from pactrain.modes import evaluating, restored_buffers

TRIED = 2
"""Rows that the network is tried with."""


def as_network_takes(model: nn.Module, batches: Batches, loss: AnyLoss) -> Batches:
    """The data with the targets of numbers as floating-point ones; the inputs too, where the network takes them so and not as they are."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    if not isinstance(batches, TensorBatches) or dtype is None:
        return batches
    *inputs, target = batches.tensors
    if isinstance(loss, Loss) and loss.task == "regression" and _whole(target):
        target = target.to(dtype)
    if any(_whole(part) for part in inputs) and not _takes(model, loss, (*inputs, target)):
        floats = [part.to(dtype) if _whole(part) else part for part in inputs]
        looks_up = any(isinstance(m, (nn.Embedding, nn.EmbeddingBag)) for m in model.modules())
        if not looks_up or _takes(
            model, loss, (*floats, target)
        ):  # if neither will do, the message is about more than types
            inputs = floats
    batches.tensors = (*inputs, target)
    return batches


def _whole(part: Tensor) -> bool:
    return not part.is_floating_point() and not part.is_complex()


@torch.no_grad()
def _takes(model: nn.Module, loss: AnyLoss, tensors: tuple[Any, ...]) -> bool:
    with evaluating(model), restored_buffers(model):
        try:
            per_example(loss, model, tuple(part[:TRIED] for part in tensors))
        except Exception:  # training will tell what it is
            return False
    return True
