"""Losses with one value per example, their declared range, and how a batch is read."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from pactrain.problem.graph_nodes import Nodes
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.gave_up import refusing

Predict = Callable[..., Any]
PerExample = Callable[[Tensor, Tensor], Tensor]
Probabilities = Callable[[Tensor], Tensor]
Task = Literal["classification", "regression"]

CLIP = 1e-4
"""Smallest probability a clipped cross-entropy sees, as is usual in this field; it is then at most ln(1/CLIP)."""

TARGET_KEYS = ("labels", "label", "target", "targets", "y")


@dataclass(frozen=True)
class Loss:
    """A named loss: `per_example(output, target)`, its range, and the kind of target it takes."""

    name: str
    per_example: PerExample
    task: Task
    low: float = 0.0
    high: float = float("inf")
    unit: float = 1.0  # what 1 means in the target's own units, for the rmse
    probabilities: Probabilities | None = None  # what turns the network's output into probabilities, if anything does

    def __call__(self, predict: Predict, batch: Any) -> Tensor:
        """Per-example losses of a batch."""
        return per_row(self.per_example(*self.read(predict, batch)))

    def read(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """The network's output on a batch, and the target in the type that the loss takes: class numbers of any, amounts in whole numbers."""
        output, target = predict_batch(predict, batch)
        if target.is_floating_point() or target.is_complex():
            return output, target
        return output, target.long() if self.task == "classification" else target.to(output.dtype)

    def with_score(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """Per-example losses, and per-example 0-1 errors (classification) or squared errors (regression)."""
        output, target = self.read(predict, batch)
        if self.task == "classification":
            _check_classes(output, target, self.name)
        losses = per_row(self.per_example(output, target))
        if self.task == "classification":
            return losses, per_row((output.argmax(1) != target).double())
        return losses, per_row((output.reshape(target.shape) - target).double().mul(self.unit).square())


@dataclass(frozen=True)
class LabelsLoss(Loss):
    """A loss for examples with several labels, each there (1) or not (0); an example is wrong if any of them is."""

    def with_score(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """Per-example losses and per-example 0-1 errors."""
        output, target = predict_batch(predict, batch)
        losses = per_row(self.per_example(output, target))
        return losses, ((output > 0) != (target > 0)).flatten(1).any(1).double()


CustomLoss = Callable[[Predict, Any], Tensor]
AnyLoss = Loss | CustomLoss


def per_row(values: Tensor) -> Tensor:
    """One value per example: further dimensions (pixels, outputs) are averaged."""
    return values if values.ndim <= 1 else values.flatten(1).mean(1)


def names_classes(loss: "AnyLoss", batch: Any) -> bool:
    """Are classes predicted?  For a callable, which does not say, integers beside the inputs are taken for them."""
    if isinstance(loss, Loss):
        return loss.task == "classification"
    parts = (
        list(batch.values()) if isinstance(batch, Mapping) else list(batch) if isinstance(batch, (tuple, list)) else []
    )
    target = parts[-1] if parts else getattr(batch, "y", None)
    if isinstance(batch, Mapping):
        target = next((batch[k] for k in TARGET_KEYS if k in batch), target)
    return isinstance(target, Tensor) and not target.is_floating_point()


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


def _cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="none")


def _softmax(output: Tensor) -> Tensor:
    return output.softmax(1)


def _binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(_match(output, target), target.to(output.dtype), reduction="none")


def _hinge(output: Tensor, target: Tensor) -> Tensor:
    return F.multi_margin_loss(output, target, reduction="none") * output.shape[1]


def _mse(output: Tensor, target: Tensor) -> Tensor:
    return (_match(output, target) - target).square()


def _l1(output: Tensor, target: Tensor) -> Tensor:
    return (_match(output, target) - target).abs()


def _huber(output: Tensor, target: Tensor) -> Tensor:
    return F.huber_loss(_match(output, target), target, reduction="none")


def _log_cosh(output: Tensor, target: Tensor) -> Tensor:
    error = _match(output, target) - target
    return error + F.softplus(-2 * error) - torch.log(torch.tensor(2.0, dtype=error.dtype, device=error.device))


def _check_classes(output: Tensor, target: Tensor, name: str) -> None:
    if output.ndim < 2 or output.shape[1] < 2:
        raise DataError(
            f"{name} needs one score for each class, two at least; the network's output has shape {tuple(output.shape)} "
            "(whole numbers as targets are taken for classes; where they are amounts, pass loss='mse')"
        )
    if target.ndim != output.ndim - 1:
        raise DataError(f"the target has shape {tuple(target.shape)}; it must hold one class number an example")
    low, high = int(target.min()), int(target.max())
    if low < 0 or high >= output.shape[1]:
        raise DataError(
            f"the classes are {low} to {high}; a network with {output.shape[1]} scores knows 0 to {output.shape[1] - 1}"
        )


def _match(output: Tensor, target: Tensor) -> Tensor:
    if output.shape == target.shape:
        return output
    if output.numel() == target.numel() and len(output) == len(target):
        return output.reshape(target.shape)
    raise DataError(
        f"the network's output has shape {tuple(output.shape)} and the target {tuple(target.shape)}; "
        "they must hold the same number of values an example"
    )


def quantile(level: float) -> Loss:
    """The pinball loss whose minimiser is the `level` quantile."""
    if not 0 < level < 1:
        raise PactrainError(f"quantile level {level} must lie strictly between 0 and 1")

    def pinball(output: Tensor, target: Tensor) -> Tensor:
        error = target - _match(output, target)
        return torch.maximum(level * error, (level - 1) * error)

    return Loss(f"quantile:{level:g}", pinball, "regression")


LOSSES: dict[str, Loss] = {
    "cross_entropy": Loss("cross_entropy", _cross_entropy, "classification", probabilities=_softmax),
    "hinge": Loss("hinge", _hinge, "classification"),
    "mse": Loss("mse", _mse, "regression"),
    "l1": Loss("l1", _l1, "regression"),
    "huber": Loss("huber", _huber, "regression"),
    "log_cosh": Loss("log_cosh", _log_cosh, "regression"),
    "quantile": quantile(0.5),
}


MULTILABEL = LabelsLoss("binary_cross_entropy", _binary_cross_entropy, "classification", probabilities=torch.sigmoid)
"""Cross-entropy of each label, averaged over an example's labels."""


def weighted(loss: Loss, weights: Tensor) -> Loss:
    """The loss with each class counted by its weight."""
    own = loss.per_example
    return replace(loss, name=f"weighted_{loss.name}", per_example=lambda o, t: own(o, t) * weights.to(o)[t])


def clipped(loss: AnyLoss) -> Loss:
    """The loss brought to [0, 1] for bounds that need it: cross-entropy with probabilities of at least `CLIP`.

    A loss with a declared finite range is scaled; for any other the user has to say how.
    """
    if isinstance(loss, Loss) and loss.name == "cross_entropy":
        limit = math.log(1 / CLIP)
        return Loss(
            "clipped_cross_entropy",
            lambda o, t: _cross_entropy(o, t).clamp(max=limit) / limit,
            loss.task,
            high=1.0,
            probabilities=loss.probabilities,
        )
    if isinstance(loss, Loss) and math.isfinite(loss.high) and math.isfinite(loss.low):
        own, low, span = loss.per_example, loss.low, loss.high - loss.low
        return Loss(f"scaled_{loss.name}", lambda o, t: (own(o, t) - low) / span, loss.task, high=1.0, unit=loss.unit)
    name = loss.name if isinstance(loss, Loss) else "your loss"
    raise PactrainError(
        f"this bound needs a loss in [0, 1] and {name} has no upper limit; use cross_entropy, a pactrain.Loss with low and high, "
        "or a bound for unbounded losses (auto, cgf, paper, subgaussian, cgf_rodriguez)"
    )


def resolve(loss: str | AnyLoss | None, first_batch: Any) -> AnyLoss:
    """The loss asked for; by default cross-entropy for integer targets and mse for floating-point ones."""
    if loss is None:
        return LOSSES["cross_entropy" if _integer_target(first_batch) else "mse"]
    if isinstance(loss, str):
        name, _, level = loss.partition(":")
        if name == "quantile" and level:
            try:
                return quantile(float(level))
            except ValueError:
                raise PactrainError(f"loss {loss!r}: {level!r} is not a number between 0 and 1") from None
        if loss not in LOSSES:
            raise PactrainError(
                f"loss {loss!r} is not known; use one of {', '.join(LOSSES)} (quantile:0.9 for another level), "
                "or a callable loss(predict, batch) that returns one value per example"
            )
        return LOSSES[loss]
    if isinstance(loss, torch.nn.modules.loss._Loss) or getattr(loss, "__module__", None) == F.__name__:
        raise PactrainError(
            f"{getattr(loss, '__name__', type(loss).__name__)} takes (output, target), and loss= a callable (predict, batch): name one "
            f"of {', '.join(LOSSES)}, or wrap it, as in "
            "lambda predict, batch: F.cross_entropy(predict(batch[0]), batch[1], reduction='none')"
        )
    return loss


def _integer_target(batch: Any) -> bool:
    def peek(*_: Any, **__: Any) -> Tensor:
        return torch.zeros(0)

    _, target = predict_batch(peek, batch)
    if not isinstance(target, Tensor):
        raise DataError(f"the target is {type(target).__name__}, not a tensor; pass loss=callable(predict, batch)")
    return not target.is_floating_point()


def loss_name(loss: AnyLoss) -> str:
    """What a loss is called."""
    return loss.name if isinstance(loss, Loss) else getattr(loss, "__qualname__", type(loss).__name__)


def refusing_loss(loss: AnyLoss) -> AnyLoss:
    """The loss with the user's part of it guarded by `refusing`."""
    return replace(loss, per_example=refusing(loss.per_example)) if isinstance(loss, Loss) else refusing(loss)


def per_example(loss: AnyLoss, predict: Predict, batch: Any) -> Tensor:
    """Per-example losses, checked to be a non-empty vector."""
    losses = loss(predict, batch)
    if not isinstance(losses, Tensor) or losses.ndim != 1 or not len(losses):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise PactrainError(
            f"the loss returned {shape}; it must return a vector with one loss per example "
            "(reduction='none'), because the bound counts examples and looks at their spread"
        )
    return losses


def named_loss(name: str | None, kind: Literal["classification", "regression"], *, unit: float = 1.0) -> Loss:
    """The loss asked for (by default the usual one) with its scores in the target's unit; it must fit the kind of target."""
    default = "cross_entropy" if kind == "classification" else "mse"
    loss = resolve(name or default, None)
    if not isinstance(loss, Loss) or loss.task != kind:
        fitting = ", ".join(k for k, v in LOSSES.items() if v.task == kind)
        raise PactrainError(f"loss {name!r} does not fit a {kind} target; use one of {fitting}")
    return replace(loss, unit=unit)
