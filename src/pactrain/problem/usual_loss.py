"""The default loss for given outputs and targets, and how a classification loss reads outputs of different shapes."""

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.problem.call_network import has_rows, no_answer, predict_batch, rows_at
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import restored_buffers, restored_modes
from pactrain.problem.named_losses import LOSSES, softmax_last
from pactrain.problem.torch_losses import as_it_is, from_torch
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.gave_up import refusing

TRIED = 2
"""Rows that the network is tried with to see the shape of its output."""

RESHAPING = (
    "View",
    "UnsafeView",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "Select",
    "Slice",
    "Transpose",
    "Permute",
    "ToCopy",
)
"""Functions of torch that leave the values as they are, as its graphs name them."""

ROUNDED = 0.02
"""How far the sum of probabilities in bfloat16 may be from 1."""

TAKEN = {
    Tensor.exp: ("logarithms of probabilities", "nn.LogSoftmax(1)", "nn.CrossEntropyLoss()"),
    as_it_is: ("probabilities", "nn.Sigmoid()", "nn.BCEWithLogitsLoss()"),
}
"""What losses take that compute no probabilities themselves, what a network has to end in for them, and the loss for other networks."""


def _log_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.nll_loss(output.clamp(min=torch.finfo(output.dtype).tiny).log(), target, reduction="none")


LOG_LOSS = Loss("log_loss", _log_loss, "classification", probabilities=as_it_is)
"""The cross-entropy of a network whose outputs are probabilities of classes."""

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


@torch.enable_grad()
def first_output(model: nn.Module, batch: Any) -> Tensor | None:
    """The network's output on the first rows of a batch, in eval mode, with its graph; None where it cannot be computed."""
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


def last_function(output: Tensor) -> str:
    """The name of the function that made an output, such as "Sigmoid"; changes of its shape are passed over."""
    node = output.grad_fn
    while node is not None and node.name().startswith(RESHAPING):
        node = node.next_functions[0][0]
    return "" if node is None else node.name().partition("Backward")[0]


def usual_loss(model: nn.Module | None, output: Tensor | None, target: Tensor) -> Loss:
    """The loss for such targets: cross-entropy for classes, binary cross-entropy for one 0/1 target per output, mse for amounts.

    Args:
        model: The network, which may be a causal language model.
        output: Its output on some of the rows, as `first_output` gives it; None if it is not known.
        target: The targets of a batch.

    Raises:
        DataError: The targets may be classes, probabilities or amounts.
    """
    whole, last = not target.is_floating_point(), "" if output is None else last_function(output)
    classes = LOG_LOSS if output is not None and (last, output.ndim) == ("Softmax", 2) else LOSSES["cross_entropy"]
    if output is None or output.shape[1:].numel() != target.shape[1:].numel():
        if whole:
            return LOSSES["next_token"] if _is_causal(model, target) else classes
        if output is not None and output.ndim == target.ndim + 1 and torch.equal(target, target.round()):
            raise _ask(output, target, "whole numbers, written as floating-point ones", classes="pass y.long()")
        return LOSSES["mse"]
    if one_hot_dim(output, target) is not None:
        return classes
    if bool(((target == 0) | (target == 1)).all()):
        if last == "Sigmoid":
            return from_torch(nn.BCELoss()) or LOSSES["mse"]
        if target.dtype != torch.bool and target.min() == target.max():
            raise _ask(output, target, f"all {int(target.min())}", classes="pass loss='binary_cross_entropy'")
        return LOSSES["binary_cross_entropy"]
    if whole:
        found = f"whole numbers from {int(target.min())} to {int(target.max())}"
        raise _ask(output, target, found, classes="let the network's last layer have one output per class")
    if bool((target.abs() == 1).all()) and bool((target < 0).any()):
        raise _ask(output, target, "-1 and 1", classes="write 0 for -1")
    if (
        target.ndim == 2
        and target.shape[1] > 1
        and bool((target >= 0).all())
        and target.sum(1).allclose(target.new_ones(()))
    ):
        raise _ask(
            output, target, "shares that add up to 1", classes="with these probabilities, pass loss='cross_entropy'"
        )
    return LOSSES["mse"]


def _ask(output: Tensor, target: Tensor, found: str, *, classes: str) -> DataError:
    return DataError(
        f"the targets are {found} in the shape {_shape(target)}, and the network's output has the shape {_shape(output)}: if they are "
        f"amounts, pass loss='mse'; if they are classes, {classes}"
    )


def _shape(tensor: Tensor) -> str:
    """The shape for any number of rows."""
    return f"({', '.join(['N', *map(str, tensor.shape[1:])])})"


def as_read(loss: Loss, output: Tensor | None, target: Tensor) -> Loss:
    """A loss of classes, as it has to read outputs of this shape: tokens with their classes last, one-hot targets.

    Raises:
        DataError: Classes and tokens cannot be told apart, or the outputs are probabilities and the loss takes none, or the reverse.
    """
    if output is None or loss.task != "classification":
        return loss
    if target.is_floating_point() and not loss.several_labels and output.shape[1:] != target.shape[1:]:
        raise DataError(
            f"{loss.name} takes classes as whole numbers, and the targets are {target.dtype}; pass y.long()"
        )
    read = loss if loss.one_layout else _in_layout(loss, output, target)
    _check_outputs(read, output)
    return read


def _in_layout(loss: Loss, output: Tensor, target: Tensor) -> Loss:
    if (dim := one_hot_dim(output, target)) is not None:
        return _classes_at(replace(loss, one_hot=True), dim)
    rest, first, last = target.shape[1:], output.shape[2:], output.shape[1:-1]
    if output.ndim < 3 or output.ndim != target.ndim + 1 or rest != last:
        return loss
    if rest == first:
        raise DataError(
            f"a network's output of shape {_shape(output)} may have its classes in dimension 1 or "
            "last; say which with loss=lambda output, target: F.cross_entropy(output.movedim(-1, 1), target, "
            "reduction='none'), or the same without movedim"
        )
    return _classes_at(loss, -1)


def _classes_at(loss: Loss, dim: int) -> Loss:
    return loss if dim == 1 else replace(loss, class_dim=dim, probabilities=loss.probabilities and softmax_last)


def _check_outputs(loss: Loss, output: Tensor) -> None:
    """Refuse probabilities where a loss makes some itself, and what are no probabilities where it takes them or their logarithms."""
    if loss.probabilities is None:
        return
    if loss.probabilities not in TAKEN:
        if (last := last_function(output)) in ("Sigmoid", "Softmax"):
            instead = "nn.BCELoss()" if last == "Sigmoid" else "nn.NLLLoss() after nn.LogSoftmax(1)"
            raise DataError(
                f"the network ends in a {last.lower()} and {loss.name} computes another one: leave it out of the network, or pass "
                f"loss={instead}"
            )
        return
    chances = loss.probabilities(output.detach().double())
    total = chances.sum(1) if output.ndim > 1 and not loss.several_labels else torch.ones((), device=chances.device)
    if bool((chances < 0).any() | (chances > 1 + ROUNDED).any() | ((total - 1).abs() > ROUNDED).any()):
        what, end, instead = TAKEN[loss.probabilities]
        raise DataError(
            f"{loss.name} takes {what}, and the network's outputs are none: let it end in {end}, or pass loss={instead}"
        )


def one_hot_dim(output: Tensor, target: Tensor) -> int | None:
    """The dimension, 1 or -1, along which a target in the shape of the output holds a single one and zeros; None if there is no such one."""
    if target.ndim < 2 or output.shape[1:] != target.shape[1:] or not bool(((target == 0) | (target == 1)).all()):
        return None
    dims = [dim for dim in (1, -1) if target.shape[dim] > 1 and bool((target.sum(dim) == 1).all())]
    return dims[0] if len(dims) == 1 or (target.ndim == 2 and dims) else None


def _is_causal(model: nn.Module | None, target: Tensor) -> bool:
    names = () if model is None else (type(m).__name__ for m in model.modules())
    return target.ndim == 2 and any(name.endswith(CAUSAL) for name in names)


def _as_floats(batch: Any) -> Any:
    """A batch whose inputs are floating-point numbers."""
    if not isinstance(batch, (tuple, list)) or not all(isinstance(part, Tensor) for part in batch):
        return batch
    return (*(part.to(torch.get_default_dtype()) for part in batch[:-1]), batch[-1])
