"""Losses of torch itself, as modules or functions, with one value per example instead of their mean or sum."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.problem.label_losses import LabelsLoss
from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES, match
from pactrain.runtime.errors import PactrainError


def as_it_is(output: Tensor) -> Tensor:
    """Outputs that are probabilities already."""
    return output


_CLASSES, _LABELS, _AMOUNTS = LOSSES["cross_entropy"], LOSSES["binary_cross_entropy"], LOSSES["mse"]

_KINDS: dict[type[nn.Module], tuple[Callable[..., Any], Loss]] = {
    nn.CrossEntropyLoss: (F.cross_entropy, _CLASSES),
    nn.NLLLoss: (F.nll_loss, replace(_CLASSES, probabilities=Tensor.exp)),
    nn.KLDivLoss: (F.kl_div, replace(_CLASSES, probabilities=Tensor.exp)),
    nn.MultiMarginLoss: (F.multi_margin_loss, replace(_CLASSES, probabilities=None)),
    nn.BCEWithLogitsLoss: (F.binary_cross_entropy_with_logits, _LABELS),
    nn.MultiLabelSoftMarginLoss: (F.multilabel_soft_margin_loss, _LABELS),
    nn.BCELoss: (
        F.binary_cross_entropy,
        LabelsLoss("BCELoss", F.binary_cross_entropy, "classification", probabilities=as_it_is, threshold=0.5),
    ),
    nn.MSELoss: (F.mse_loss, _AMOUNTS),
    nn.L1Loss: (F.l1_loss, LOSSES["l1"]),
    nn.SmoothL1Loss: (F.smooth_l1_loss, _AMOUNTS),
    nn.HuberLoss: (F.huber_loss, _AMOUNTS),
    nn.PoissonNLLLoss: (F.poisson_nll_loss, replace(_AMOUNTS, task=None)),
    nn.SoftMarginLoss: (F.soft_margin_loss, replace(_AMOUNTS, task=None)),
    nn.HingeEmbeddingLoss: (F.hinge_embedding_loss, replace(_AMOUNTS, task=None)),
}
"""Losses of an output and a target: the function that does the same, and a loss that reads outputs and targets alike."""

_MODULES = {function: module for module, (function, _) in _KINDS.items()}

_OURS = (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss, nn.MSELoss, nn.L1Loss)
"""Losses that are one of ours if nothing in them was set."""


def from_torch(loss: Any) -> Loss | None:
    """A loss of torch as a `Loss`; None if it is something else.

    Args:
        loss: A module of `torch.nn` (its weights, ignored index and smoothing are kept, its reduction is replaced), a function
            of `torch.nn.functional`, or a `functools.partial` of one with keywords.

    Raises:
        PactrainError: It is a function of torch that is no loss of an output and a target.

    Example:
        >>> from_torch(nn.CrossEntropyLoss(label_smoothing=0.1)).task
        'classification'
    """
    function, keywords = (loss.func, dict(loss.keywords)) if isinstance(loss, partial) else (loss, {})
    if isinstance(loss, type) and issubclass(loss, nn.modules.loss._Loss):
        loss = loss()
    elif not isinstance(function, nn.Module) and function in _MODULES:
        loss = _MODULES[function](**{name: value for name, value in keywords.items() if name != "reduction"})
    elif getattr(function, "__module__", None) == F.__name__:
        raise _refused(function.__name__)
    if not isinstance(loss, nn.modules.loss._Loss) or not type(loss).__module__.startswith("torch."):
        return None
    return _of_module(loss)


def _refused(name: str) -> PactrainError:
    return PactrainError(
        f"{name} is no loss of an output and a target alone; write a function of both that calls it with reduction='none', such "
        "as lambda output, target: F.gaussian_nll_loss(output[:, 0], target, output[:, 1].exp(), reduction='none')"
    )


def _of_module(module: nn.modules.loss._Loss) -> Loss:
    kind = type(module)
    if kind not in _KINDS:
        raise _refused(kind.__name__)
    changed = [name for name in ("weight", "pos_weight") if getattr(module, name, None) is not None]
    for name in changed:
        given = getattr(module, name)
        if not bool((given.isfinite() & (given >= 0)).all()):
            raise PactrainError(f"{name} of {kind.__name__} must hold finite numbers, none below zero")
    smoothing = float(getattr(module, "label_smoothing", 0.0))
    ignore = int(getattr(module, "ignore_index", -100))
    like = _KINDS[kind][1]
    if kind in _OURS and not changed and not smoothing and ignore == -100:
        return like
    each = copy.deepcopy(module)
    each.reduction = "none"
    name = ("weighted_" if changed else "") + ("smoothed_" if smoothing else "")
    name += like.name if kind in _OURS else kind.__name__
    call = _on_device(each) if like.task == "classification" and not like.several_labels else _matched(each)
    if kind is nn.KLDivLoss:  # torch gives one value per class, and a divergence is their sum
        return replace(like, name=name, per_example=lambda output, target: call(output, target).sum(1))
    return replace(like, name=name, per_example=call, ignore=ignore)


def _on_device(module: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """The module as a function, its weights where the outputs are."""

    def call(output: Tensor, target: Tensor) -> Tensor:
        values: Tensor = module.to(output.device, output.dtype)(output, target)
        return values

    return call


def _matched(module: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss with the output brought to the shape of the target: torch would broadcast (N, 1) and (N,) to an N × N table."""
    call = _on_device(module)
    return lambda output, target: call(match(output, target), target.to(output.dtype))
