"""Losses by name."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from pactrain.problem.label_losses import LabelsLoss, NextTokenLoss
from pactrain.problem.losses import Loss, Task
from pactrain.runtime.errors import DataError, PactrainError


def _cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="none")


def _softmax(output: Tensor) -> Tensor:
    return output.softmax(1)


def softmax_last(output: Tensor) -> Tensor:
    """Probabilities of classes that stand in the last dimension."""
    return output.softmax(-1)


def _binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(match(output, target), target.to(output.dtype), reduction="none")


def _hinge(output: Tensor, target: Tensor) -> Tensor:
    return F.multi_margin_loss(output, target, reduction="none") * output.shape[1]


def _mse(output: Tensor, target: Tensor) -> Tensor:
    return (match(output, target) - target).square()


def _l1(output: Tensor, target: Tensor) -> Tensor:
    return (match(output, target) - target).abs()


def _huber(output: Tensor, target: Tensor) -> Tensor:
    return F.huber_loss(match(output, target), target, reduction="none")


def _log_cosh(output: Tensor, target: Tensor) -> Tensor:
    error = match(output, target) - target
    return error + F.softplus(-2 * error) - torch.log(torch.tensor(2.0, dtype=error.dtype, device=error.device))


def match(output: Tensor, target: Tensor) -> Tensor:
    """The output in the shape of the target, with which it must have the number of values in common."""
    if output.shape == target.shape:
        return output
    if output.numel() == target.numel() and len(output) == len(target):
        return output.reshape(target.shape)
    raise DataError(
        f"the network's output has shape {tuple(output.shape)} and the target {tuple(target.shape)}; "
        "they must hold the same number of values per example"
    )


def quantile(level: float) -> Loss:
    """The pinball loss, whose minimiser is the `level` quantile.

    Args:
        level: The quantile, strictly between 0 and 1.

    Returns:
        A loss for regression, by the name of "quantile:" and the level.

    Raises:
        PactrainError: If the level lies elsewhere.

    Example:
        >>> quantile(0.9).name
        'quantile:0.9'
    """
    if not 0 < level < 1:
        raise PactrainError(f"quantile level {level} must lie strictly between 0 and 1")

    def pinball(output: Tensor, target: Tensor) -> Tensor:
        error = target - match(output, target)
        return torch.maximum(level * error, (level - 1) * error)

    return Loss(f"quantile:{level:g}", pinball, "regression")


LOSSES: dict[str, Loss] = {
    "cross_entropy": Loss("cross_entropy", _cross_entropy, "classification", probabilities=_softmax),
    "binary_cross_entropy": LabelsLoss(
        "binary_cross_entropy", _binary_cross_entropy, "classification", probabilities=torch.sigmoid
    ),
    "next_token": NextTokenLoss(
        "next_token", _cross_entropy, "classification", probabilities=softmax_last, class_dim=-1
    ),
    "hinge": Loss("hinge", _hinge, "classification"),
    "mse": Loss("mse", _mse, "regression"),
    "l1": Loss("l1", _l1, "regression"),
    "huber": Loss("huber", _huber, "regression"),
    "log_cosh": Loss("log_cosh", _log_cosh, "regression"),
    "quantile": quantile(0.5),
}


def weighted(loss: Loss, weights: Tensor, *, padded: bool = False) -> Loss:
    """The loss with each class counted by its weight; `padded`: classes beyond the last weight have a weight of 1."""
    own = loss.per_example

    def counted(output: Tensor, target: Tensor) -> Tensor:
        classes = 2 if loss.several_labels else output.shape[1]
        if target.is_floating_point() and not loss.several_labels:
            raise DataError(
                "class weights need one class per example, not probabilities; write the weights into a loss of your own"
            )
        each = F.pad(weights, (0, max(0, classes - len(weights))), value=1.0) if padded else weights
        if len(each) != classes:
            raise DataError(f"there are {len(each)} class weights, and {classes} classes; pass one weight per class")
        return own(output, target) * each.to(output)[target.long().clamp(0, classes - 1)]

    return replace(loss, name=f"weighted_{loss.name}", per_example=counted)


def by_name(name: str) -> Loss:
    """The loss of this name.

    Raises:
        PactrainError: There is no such loss.

    Example:
        >>> by_name("quantile:0.9").task
        'regression'
    """
    kind, _, level = name.partition(":")
    if kind == "quantile" and level:
        try:
            return quantile(float(level))
        except ValueError:
            raise PactrainError(f"loss {name!r}: {level!r} is not a number between 0 and 1") from None
    if name not in LOSSES:
        raise PactrainError(
            f"loss {name!r} is not known; use one of {', '.join(LOSSES)} (quantile:0.9 for another level), one of torch's "
            "losses, or a callable loss(predict, batch) or loss(output, target) that returns one value per example"
        )
    return LOSSES[name]


def named_loss(name: str | None, kind: Task, *, unit: float = 1.0) -> Loss:
    """The loss asked for (by default the usual one) with its scores in the target's unit; it must fit the kind of target, one per example."""
    default = "cross_entropy" if kind == "classification" else "mse"
    loss = by_name(name or default)
    if loss.task != kind or type(loss) is not Loss:
        fitting = ", ".join(k for k, v in LOSSES.items() if v.task == kind and type(v) is Loss)
        raise PactrainError(f"loss {name!r} does not fit a {kind} target; use one of {fitting}")
    return replace(loss, unit=unit)
