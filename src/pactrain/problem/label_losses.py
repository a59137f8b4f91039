"""Losses for labels that are each there or not, and for the next token of a text."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from pactrain.problem.call_network import Predict
from pactrain.problem.losses import Loss, Meaning, per_row
from pactrain.problem.target_checks import check_labels


@dataclass(frozen=True)
class LabelsLoss(Loss):
    """A loss for labels that are each there (1) or not (0): one per example, several, or one per pixel.

    An example with several labels is wrong if any of them is; of pixels the share that is wrong counts.

    Attributes:
        threshold: Output above which a label is predicted to be there: 0 for logits, 0.5 for probabilities.
    """

    threshold: float = 0.0
    several_labels: ClassVar[bool] = True
    one_layout: ClassVar[bool] = True

    @property
    def meaning(self) -> Meaning:
        """Each output is a label."""
        return "labels"

    def output_at(self, shares: Tensor) -> Tensor:
        """The output that predicts each label with these probabilities."""
        return shares if self.threshold else shares.logit()

    def with_score(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """Per-example losses and per-example 0-1 errors."""
        output, target = self.read(predict, batch)
        check_labels(target)
        losses = per_row(self.per_example(output, target))
        wrong = (output.reshape(target.shape) > self.threshold) != (target > 0.5)
        return losses, (wrong.flatten(1).any(1) if target.ndim == 2 else per_row(wrong.double())).double()

    def rows(self, values: Tensor, target: Tensor) -> Tensor:
        """One value per example: the mean over its labels."""
        return per_row(values)


@dataclass(frozen=True)
class NextTokenLoss(Loss):
    """A loss of tokens, each predicted from those before it, as causal language models are trained."""

    one_layout: ClassVar[bool] = True

    def read(self, predict: Predict, batch: Any) -> tuple[Tensor, Tensor]:
        """The output at every token but the last, and the token after it."""
        output, target = super().read(predict, batch)
        return (output[:, :, :-1] if output.ndim > 2 else output), target[:, 1:]
