"""What the outputs of a network mean, by names that a file can hold."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from pactrain.problem.loss_weights import RowWeighted
from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.torch_losses import as_it_is

Meaning = Literal["classes", "labels", "values", "outputs"]
"""One class per example, several labels, amounts, or whatever a user's own loss makes of them."""

SOFTMAX_LAST = "softmax over the last dimension"

TURNS: dict[str, Callable[[Tensor], Tensor] | None] = {
    "softmax": LOSSES["cross_entropy"].probabilities,
    SOFTMAX_LAST: LOSSES["next_token"].probabilities,
    "sigmoid": torch.sigmoid,
    "exponential": Tensor.exp,
    "as it is": as_it_is,
}
"""Functions that turn outputs into probabilities."""


def unweighted(loss: Loss) -> Loss:
    """The loss without weights of rows."""
    return loss.inner if isinstance(loss, RowWeighted) else loss


def meaning_of(loss: Loss) -> Meaning:
    """What the outputs of a network that is trained on a loss mean."""
    plain = unweighted(loss)
    if plain.several_labels:
        return "labels"
    return "classes" if plain.task == "classification" else "values" if plain.task == "regression" else "outputs"


def name_of_turn(probabilities: Callable[[Tensor], Tensor] | None) -> str | None:
    """The name of a function in `TURNS`; None if there is none, or it is the user's own."""
    return next((name for name, turn in TURNS.items() if turn is probabilities), None)
