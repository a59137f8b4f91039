"""The default loss for given outputs and targets, and how a classification loss reads outputs of different shapes."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.call_network import has_rows, no_answer, predict_batch, rows_at
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import restored_buffers, restored_modes
from pactrain.problem.named_losses import LOSSES, softmax_last
from pactrain.problem.torch_losses import from_torch
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.gave_up import refusing

TRIED = 2
"""Rows that the network is tried with to see the shape of its output."""

CAUSAL = ("ForCausalLM", "LMHeadModel")
"""How the classes of causal language models are named, whose labels are their inputs: each token is to be predicted from those before."""


def target_of(batch: Any) -> Tensor:
    """The target of a batch.

    Raises:
        DataError: There is none, or it is no tensor.
    """
    _, target = predict_batch(no_answer, batch)
    if not isinstance(target, Tensor):
        raise DataError(f"the target is {type(target).__name__}, not a tensor; pass loss=callable(predict, batch)")
    return target


@torch.no_grad()
def first_output(model: nn.Module, batch: Any) -> Tensor | None:
    """What the network says to the first rows of a batch, in eval mode; None where it cannot be asked."""
    rows = rows_at(batch, slice(TRIED)) if has_rows(batch) else batch
    with restored_modes(model), restored_buffers(model), torch.random.fork_rng(devices=[]):
        model.eval()
        network = refusing(getattr(model, "_orig_mod", model))  # nothing is to be compiled for a few rows
        for tried in (rows, _as_floats(rows)):
            try:
                output = predict_batch(network, tried)[0]
            except PactrainError:  # which training will meet again, and tell
                continue
            return output if output.ndim else None
    return None


def usual_loss(model: nn.Module | None, output: Tensor | None, target: Tensor) -> Loss:
    """The loss for such targets: cross-entropy for classes, binary cross-entropy for one 0/1 target per output, mse for amounts.

    Args:
        model: The network, whose last layer may be a sigmoid.
        output: Its output on some of the rows; None if it is not known.
        target: The targets of a batch.

    Raises:
        DataError: The network gives one number per example and the targets are whole numbers of any size.
    """
    whole = not target.is_floating_point()
    if output is None or output.shape[1:].numel() != target.shape[1:].numel():
        return LOSSES["next_token" if whole and _is_causal(model, target) else "cross_entropy" if whole else "mse"]
    zeros_and_ones = bool(((target == 0) | (target == 1)).all()) and bool((target == 1).any())
    if zeros_and_ones and (whole or bool((target == 0).any())):
        if is_one_hot(output, target):
            return LOSSES["cross_entropy"]
        probabilities = model is not None and isinstance(list(model.modules())[-1], nn.Sigmoid)
        return from_torch(nn.BCELoss()) or LOSSES["mse"] if probabilities else LOSSES["binary_cross_entropy"]
    if whole:
        raise DataError(
            f"the targets are whole numbers from {int(target.min())} to {int(target.max())} and the network gives as many "
            f"numbers per example, {target.shape[1:].numel()}: if they are amounts, pass loss='mse'; if they are classes, let "
            "the network's last layer have one output per class"
        )
    return LOSSES["mse"]


def as_read(loss: Loss, output: Tensor | None, target: Tensor) -> Loss:
    """A loss of classes, as it has to read outputs of this shape: tokens with their classes last, one-hot targets.

    Raises:
        DataError: Classes and tokens cannot be told apart.
    """
    if output is None or loss.task != "classification" or loss.one_layout:
        return loss
    if is_one_hot(output, target):
        return replace(loss, one_hot=True)
    rest, first, last = target.shape[1:], output.shape[2:], output.shape[1:-1]
    if output.ndim < 3 or output.ndim != target.ndim + 1 or rest != last:
        return loss
    if rest == first:
        raise DataError(
            f"a network's output of shape (N, {', '.join(map(str, output.shape[1:]))}) may have its classes in dimension 1 or "
            "last; say which with loss=lambda output, target: F.cross_entropy(output.movedim(-1, 1), target, "
            "reduction='none'), or the same without movedim"
        )
    return replace(loss, class_dim=-1, probabilities=loss.probabilities and softmax_last)


def is_one_hot(output: Tensor, target: Tensor) -> bool:
    """True if every row of a target with as many columns as the output holds a single one and zeros."""
    if target.ndim != 2 or target.shape[1] < 2 or output.shape[1:] != target.shape[1:]:
        return False
    return bool(((target == 0) | (target == 1)).all()) and bool((target.sum(1) == 1).all())


def _is_causal(model: nn.Module | None, target: Tensor) -> bool:
    names = () if model is None else (type(m).__name__ for m in model.modules())
    return target.ndim == 2 and any(name.endswith(CAUSAL) for name in names)


def _as_floats(batch: Any) -> Any:
    """A batch whose inputs are floating-point numbers."""
    if not isinstance(batch, (tuple, list)) or not all(isinstance(part, Tensor) for part in batch):
        return batch
    return (*(part.to(torch.get_default_dtype()) for part in batch[:-1]), batch[-1])
