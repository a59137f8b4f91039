"""`as_loss`: converts whatever a user passes as `loss=` to a `Loss`."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from pactrain.problem.losses import AnyLoss, CallableLoss, Loss
from pactrain.problem.named_losses import LOSSES, by_name
from pactrain.problem.torch_losses import from_torch
from pactrain.problem.usual_loss import as_read, first_output, target_of, usual_loss
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused, refusing


def as_loss(loss: str | AnyLoss | None, first_batch: Any, model: nn.Module | None = None) -> Loss:
    """The loss that a user asked for, as a `Loss`; every public function that takes `loss=` calls this once.

    Args:
        loss: A name, a `Loss`, a loss of torch (module or function), a callable `loss(predict, batch)` or `loss(output, target)`,
            or None for the usual loss of such outputs and targets.
        first_batch: A batch of the data; None if there is none yet.
        model: The network, of which a few rows tell the shape of its output; None if it is not known.

    Returns:
        The loss; a callable `loss(predict, batch)` is wrapped as a `CallableLoss`.

    Raises:
        PactrainError: The name is not known, or it cannot be told how the callable is meant.
        DataError: The batch has no target, or one that does not belong to the network's output.

    Example:
        >>> as_loss("quantile:0.9", None).task
        'regression'
    """
    if isinstance(loss, Loss):
        return loss
    if loss is not None and not isinstance(loss, str) and (not callable(loss) or _is_own_class(loss)):
        raise PactrainError(
            f"loss={loss!r:.60} must be one of {', '.join(LOSSES)}, a loss of torch, or a callable loss(output, target) or "
            "loss(predict, batch) that returns one value per example"
        )
    known = by_name(loss) if isinstance(loss, str) else from_torch(loss)
    if first_batch is None or (model is None and loss is not None):
        return known or CallableLoss.of(loss)  # type: ignore[arg-type]
    if known is None and loss is not None:
        return _own(loss, first_batch, model)  # type: ignore[arg-type]
    target = target_of(first_batch)
    output = None if model is None else first_output(model, first_batch)
    return as_read(known or usual_loss(model, output, target), output, target)


def _is_own_class(loss: object) -> bool:
    """True for a class of which no object was made, unless torch's losses have it."""
    return isinstance(loss, type) and not issubclass(loss, nn.modules.loss._Loss)


class _Predict:
    """Stands for the network, and notes that it was called."""

    called = False

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.called = True
        raise RuntimeError("the network was called")


def _own(function: Callable[..., Any], batch: Any, model: nn.Module) -> Loss:
    """A user's function: of (predict, batch) if it calls its first argument, else of (output, target)."""
    predict, name = _Predict(), getattr(function, "__qualname__", type(function).__name__)
    try:
        refusing(function)(predict, batch)
        why = "it returned without calling its first argument"
    except Refused as error:
        why = str(error)
    output = None if predict.called else first_output(model, batch)
    if output is None:
        return CallableLoss.of(function)
    in_order = _reversed(function) if _is_keras(function) else function
    target = target_of(batch)[: len(output)]
    try:
        values, alone = (refusing(in_order)(output[:rows].detach(), target[:rows]) for rows in (len(output), 1))
    except (Refused, PactrainError) as error:
        raise PactrainError(
            f"the loss {name} can be called neither as loss(predict, batch) ({why}) nor as loss(output, target) ({error}), "
            f"the output being of shape {tuple(output.shape)}"
        ) from error
    if not isinstance(values, Tensor) or not values.ndim or len(values) != len(output):
        shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise PactrainError(
            f"the loss {name} of {len(output)} rows is {shape}; it must return a vector with one loss per example "
            "(reduction='none'), because the bound counts examples and looks at their spread"
        )
    if values.shape[1:] != alone.shape[1:]:
        raise PactrainError(
            f"the loss {name} of {len(output)} rows has the shape {tuple(values.shape)}: its output {tuple(output.shape)} and target "
            f"{tuple(target.shape)} were broadcast, every row beside every other; bring them to one shape, as in output.squeeze(1)"
        )
    return Loss(f"own_{name}", in_order, None)


def _is_keras(function: Callable[..., Any]) -> bool:
    """True if the parameters are named as Keras has them, the target first: (y_true, y_pred)."""
    try:
        names = list(inspect.signature(function).parameters)[:2]
    except (TypeError, ValueError):
        return False
    return len(names) == 2 and "true" in names[0] and "pred" in names[1]


def _reversed(function: Callable[..., Any]) -> Callable[[Tensor, Tensor], Any]:
    return lambda output, target: function(target, output)
