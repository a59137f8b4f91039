"""The type of all losses: one value per example, a declared range, and the kind of target."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from torch import Tensor

from pactrain.problem.call_network import Predict, integers_beside_inputs, no_answer, predict_batch
from pactrain.problem.target_checks import check_classes, check_output
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import refusing

PerExample = Callable[[Tensor, Tensor], Tensor]
BatchLoss = Callable[[Predict, Any], Tensor]
Probabilities = Callable[[Tensor], Tensor]
Task = Literal["classification", "regression"]

Meaning = Literal["classes", "labels", "values", "outputs"]
"""What outputs mean: one class per example, several labels, amounts, or whatever a user's own loss makes of them."""

CLIP = 1e-4
"""Smallest probability a clipped cross-entropy sees, as is usual in this field; it is then at most ln(1/CLIP)."""

CLIPPED = ("cross_entropy", "binary_cross_entropy")
"""Losses without an upper limit that are clipped where one is needed."""


@dataclass(frozen=True)
class Loss:
    """A loss of the network's output and a target, with one value per example.

    Attributes:
        name: What messages, configurations and certificates call it.
        per_example: Function of the output and the target of a batch; returns one row per example, whose values are averaged.
        task: "classification" (targets are class numbers, scored by the 0-1 error) or "regression" (targets are amounts, scored by
            the root mean squared error); None where it is not known, as for a callable.
        low: Smallest value of the loss.
        high: Largest value of the loss; infinity if it has none.  Bounds for losses in [0, 1] need a finite one.
        unit: What 1 means in the target's own units; the root mean squared error is multiplied by it.
        probabilities: Function that turns the network's output into probabilities; None if there is no such function.
        class_dim: Dimension of the output that holds one score per class; -1 for tokens as Hugging Face has them, (N, T, C).
        one_hot: True if targets hold a one at their class and zeros elsewhere, instead of class numbers.
        ignore: Class number of pixels or tokens that have no label; an example's loss is the mean over the others.

    Example:
        >>> import torch
        >>> def brier(output, target):
        ...     return (output.softmax(1) - torch.nn.functional.one_hot(target, output.shape[1])).square().sum(1)
        >>> loss = Loss("brier", brier, "classification", low=0.0, high=2.0)
        >>> loss(torch.nn.Identity(), (torch.zeros(3, 2), torch.tensor([0, 1, 1])))
        tensor([0.5000, 0.5000, 0.5000])
    """

    name: str
    per_example: PerExample
    task: Task | None
    low: float = 0.0
    high: float = math.inf
    unit: float = 1.0
    probabilities: Probabilities | None = None
    class_dim: int = 1
    one_hot: bool = False
    ignore: int = -100

    of_outputs: ClassVar[bool] = True
    """True if an example's loss follows from its own row of the network's output and its target: examples may then be computed
    together (vmap), and outputs and targets may be scaled."""

    several_labels: ClassVar[bool] = False
    """True if an example has several labels, each of which is there or not."""

    one_layout: ClassVar[bool] = False
    """True if outputs and targets have one possible layout, so that their shapes need not be interpreted."""

    def __call__(self, predict: Predict, batch: Any) -> Tensor:
        """Compute the losses of a batch.

        Args:
            predict: The network, or a function in its place.
            batch: A batch of the data, as the network's loader gives it.

        Returns:
            One loss per example.
        """
        output, target = self.read(predict, batch)
        return self.rows(self.per_example(output, target), target)

    def read(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """Call the network on a batch.

        Args:
            predict: The network, or a function in its place.
            batch: A batch of the data, as the network's loader gives it.

        Returns:
            Its output, with classes in dimension 1, and the target in the type that the loss takes.

        Raises:
            PactrainError: The output holds no real numbers.
        """
        output, target = predict_batch(predict, batch)
        if self.task is not None:
            check_output(output, self.name)
        if self.class_dim != 1 and output.ndim > 2:
            output = output.movedim(self.class_dim, 1)
        if self.one_hot:
            return output, target.argmax(self.class_dim)
        if self.task is None or target.is_floating_point() or target.is_complex():
            return output, target
        return output, target.long() if self.task == "classification" else target.to(output.dtype)

    def target(self, batch: Any) -> Tensor:
        """Find the target of a batch, without calling the network.

        Args:
            batch: A batch of the data, as the network's loader gives it.

        Returns:
            The target in the type that the loss takes.
        """
        return self.read(no_answer, batch)[1]

    def with_score(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor | None]:
        """Compute losses and scores of a batch.

        Args:
            predict: The network, or a function in its place.
            batch: A batch of the data, as the network's loader gives it.

        Returns:
            Per-example losses, and 0-1 errors (classification) or squared errors (regression); None if the task is not known.

        Raises:
            DataError: The target does not belong to the network's classes.
        """
        output, target = self.read(predict, batch)
        if self.task == "classification":
            check_classes(output, target, self.name, self.ignore)
        losses = self.rows(self.per_example(output, target), target)
        if self.task is None:
            return losses, None
        if self.task == "classification":
            most_likely = (
                target.argmax(1) if target.shape == output.shape else target
            )  # probabilities, or class numbers
            return losses, self.rows((output.argmax(1) != most_likely).double(), target)
        return losses, per_row((output.reshape(target.shape) - target).double().mul(self.unit).square())

    def rows(self, values: Tensor, target: Tensor) -> Tensor:
        """Average the values within each example.

        Args:
            values: Losses or errors; the first dimension is that of the examples.
            target: Their targets.

        Returns:
            Means over pixels, tokens or outputs; of classes, over those that have a label.
        """
        if values.ndim <= 1 or self.task != "classification" or values.shape != target.shape:
            return per_row(values)
        labelled = (target != self.ignore).flatten(1)
        return (values.flatten(1) * labelled).sum(1) / labelled.sum(1).clamp(min=1)

    def output_at(self, shares: Tensor) -> Tensor:
        """Invert the network's last function.

        Args:
            shares: Probabilities of the labels.

        Returns:
            The output that predicts each label with these probabilities: logits.
        """
        return shares.logit()

    def is_classification(self, batch: Any) -> bool:
        """Tell classification from regression.

        Args:
            batch: A batch of the data, as the network's loader gives it.

        Returns:
            True if classes are predicted; where the task is not known, if integers stand beside the inputs.
        """
        return integers_beside_inputs(batch) if self.task is None else self.task == "classification"

    @property
    def meaning(self) -> Meaning:
        """What the outputs of a network that is trained on the loss mean."""
        return "outputs" if self.task is None else "classes" if self.task == "classification" else "values"

    @property
    def plain(self) -> "Loss":
        """The loss without weights of rows."""
        return self

    @property
    def full_name(self) -> str:
        """The name in a configuration: of a callable, that of the user's function."""
        return self.name

    @property
    def title(self) -> str:
        """The name in a statement of a certificate."""
        return f"{self.name.replace('_', '-')} loss"

    @property
    def clip(self) -> float | None:
        """The largest value of the loss after clipping; None if there is no natural clip."""
        if self.name in CLIPPED:
            return math.log(1 / CLIP)
        return self.high if math.isfinite(self.high) and self.low == 0 else None

    def clipped(self) -> "Loss":
        """The loss brought to [0, 1] for bounds that need it: cross-entropy with probabilities of at least `CLIP`.

        Returns:
            Clipped cross-entropy, or a loss with a finite range scaled by it.

        Raises:
            PactrainError: If the loss has no upper limit.
        """
        own, low, span = self.per_example, self.low, self.high - self.low
        if self.name in CLIPPED:
            limit, name = math.log(1 / CLIP), f"clipped_{self.name}"
            return replace(self, name=name, per_example=lambda o, t: own(o, t).clamp(max=limit) / limit, high=1.0)
        if math.isfinite(span):
            name = f"scaled_{self.name}"
            return replace(
                self, name=name, per_example=lambda o, t: ((own(o, t) - low) / span).clamp(0, 1), low=0.0, high=1.0
            )
        raise _unlimited(self.name)

    def guarded(self) -> "Loss":
        """Guard the user's part of the loss by `refusing`.

        Returns:
            The guarded loss.
        """
        return replace(self, per_example=refusing(self.per_example))


def _no_outputs(output: Tensor, target: Tensor) -> Tensor:
    raise PactrainError("a loss(predict, batch) reads batches itself; it is no function of an output and a target")


@dataclass(frozen=True)
class CallableLoss(Loss):
    """A user's callable `loss(predict, batch)`, which says nothing about its task, range or targets.

    Attributes:
        function: The user's callable.
    """

    function: BatchLoss = field(kw_only=True)

    of_outputs: ClassVar[bool] = False

    @classmethod
    def of(cls, function: BatchLoss) -> "CallableLoss":
        """Wrap a callable."""
        return cls("custom", _no_outputs, None, function=function)

    def __call__(self, predict: Predict, batch: Any) -> Tensor:
        """What the user's callable returns."""
        return self.function(predict, batch)

    def with_score(self, predict: Predict, batch: Any) -> tuple[Tensor, None]:
        """Per-example losses; there is no score."""
        return per_example(self, predict, batch), None

    @property
    def full_name(self) -> str:
        """The name of the user's function or class."""
        return str(getattr(self.function, "__qualname__", type(self.function).__name__))

    @property
    def title(self) -> str:
        """The name in a statement of a certificate."""
        return "loss"

    def clipped(self) -> Loss:
        """Nothing is known of the range."""
        raise _unlimited("your loss")

    def guarded(self) -> Loss:
        """The loss with the user's callable guarded by `refusing`."""
        return replace(self, function=refusing(self.function))


AnyLoss = Loss | BatchLoss | PerExample
"""What public functions take as `loss=`, beside names; `as_loss` makes it a `Loss`."""


def per_row(values: Tensor) -> Tensor:
    """One value per example: further dimensions (pixels, outputs) are averaged."""
    return values if values.ndim <= 1 else values.flatten(1).mean(1)


def per_example(loss: Loss, predict: Predict, batch: Any) -> Tensor:
    """Per-example losses, checked to be a non-empty vector."""
    losses = loss(predict, batch)
    if not isinstance(losses, Tensor) or losses.ndim != 1 or not len(losses):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise PactrainError(
            f"the loss returned {shape}; it must return a vector with one loss per example "
            "(reduction='none'), because the bound counts examples and looks at their spread"
        )
    if not losses.is_floating_point():
        raise PactrainError(f"the loss returned {losses.dtype}; it must return real floating-point numbers")
    return losses


def _unlimited(name: str) -> PactrainError:
    return PactrainError(
        f"this bound needs a loss in [0, 1] and {name} has no upper limit; use cross_entropy, a pactrain.Loss with low and high, "
        "or a bound for unbounded losses (auto, cgf, paper, subgaussian, cgf_rodriguez)"
    )
