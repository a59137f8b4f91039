"""Losses of torch itself, as modules or functions, with one value per example instead of their mean or sum."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.problem.label_losses import LabelsLoss
from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES, match
from pactrain.runtime.errors import PactrainError

_MODULES: dict[Callable[..., Any], type[nn.Module]] = {
    F.cross_entropy: nn.CrossEntropyLoss,
    F.nll_loss: nn.NLLLoss,
    F.multi_margin_loss: nn.MultiMarginLoss,
    F.binary_cross_entropy_with_logits: nn.BCEWithLogitsLoss,
    F.binary_cross_entropy: nn.BCELoss,
    F.mse_loss: nn.MSELoss,
    F.l1_loss: nn.L1Loss,
    F.smooth_l1_loss: nn.SmoothL1Loss,
    F.huber_loss: nn.HuberLoss,
    F.poisson_nll_loss: nn.PoissonNLLLoss,
}
"""The module that does the same as a function."""

_PLAIN = {nn.CrossEntropyLoss: "cross_entropy", nn.BCEWithLogitsLoss: "binary_cross_entropy"}
_PLAIN |= {nn.MSELoss: "mse", nn.L1Loss: "l1"}
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
        raise PactrainError(
            f"{function.__name__} is not known as a loss of (output, target); write a function of output and target "
            "that calls it with reduction='none'"
        )
    if not isinstance(loss, nn.modules.loss._Loss) or not type(loss).__module__.startswith("torch."):
        return None
    return _of_module(loss)


def _of_module(module: nn.modules.loss._Loss) -> Loss:
    kind, default = type(module), type(module)()
    changed = [name for name in ("weight", "pos_weight") if getattr(module, name, None) is not None]
    for name in changed:
        given = getattr(module, name)
        if not bool((given.isfinite() & (given >= 0)).all()):
            raise PactrainError(f"{name} of {kind.__name__} must hold finite numbers, none below zero")
    smoothing = float(getattr(module, "label_smoothing", 0.0))
    ignore = int(getattr(module, "ignore_index", -100))
    if kind in _PLAIN and not changed and not smoothing and ignore == -100:
        return LOSSES[_PLAIN[kind]]
    each = copy.deepcopy(module)
    each.reduction = "none"
    name = ("weighted_" if changed else "") + ("smoothed_" if smoothing else "") + _PLAIN.get(kind, kind.__name__)
    if isinstance(default, (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)):
        turn = {nn.CrossEntropyLoss: LOSSES["cross_entropy"].probabilities, nn.NLLLoss: Tensor.exp}.get(kind)
        return Loss(name, _on_device(each), "classification", probabilities=turn, ignore=ignore)
    if isinstance(default, nn.BCEWithLogitsLoss):
        probabilities = LOSSES["binary_cross_entropy"].probabilities
        return LabelsLoss(name, _matched(each), "classification", probabilities=probabilities)
    if isinstance(default, nn.BCELoss):
        return LabelsLoss(name, _matched(each), "classification", probabilities=as_it_is, threshold=0.5)
    regression = isinstance(default, (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss))
    return Loss(name, _matched(each), "regression" if regression else None)


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


def as_it_is(output: Tensor) -> Tensor:
    """Outputs that are probabilities already."""
    return output
