"""Functions that turn a network's outputs into probabilities, by the names under which files keep them."""

from collections.abc import Callable

import torch
from torch import Tensor

from pactrain.problem.named_losses import LOSSES
from pactrain.problem.torch_losses import as_it_is

SOFTMAX_LAST = "softmax over the last dimension"

PROBABILITIES: dict[str, Callable[[Tensor], Tensor] | None] = {
    "softmax": LOSSES["cross_entropy"].probabilities,
    SOFTMAX_LAST: LOSSES["next_token"].probabilities,
    "sigmoid": torch.sigmoid,
    "exponential": Tensor.exp,
    "as it is": as_it_is,
}


def name_of_probabilities(function: Callable[[Tensor], Tensor] | None) -> str | None:
    """The name of a function in `PROBABILITIES`; None if there is none, or it is the user's own."""
    return next((name for name, known in PROBABILITIES.items() if known is function), None)
