"""Measuring the untrained network: its scores, the number of examples, and errors about shapes that do not fit."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import batch_statistics
from pactrain.problem.scores import Scores, measure
from pactrain.runtime.errors import DataError, PactrainError


def training_mode(model: nn.Module) -> None:
    """Set train mode, unless the user has already set it for some parts of the model only."""
    if not any(m.training for m in model.modules()):
        model.train()


@contextmanager
def shapes_named(sample: Any) -> Iterator[None]:
    """Add the shape of the data to the error of a network that does not take it."""
    try:
        yield
    except (RuntimeError, TypeError) as error:
        first = sample[0] if isinstance(sample, (tuple, list)) else sample
        others = isinstance(error, (PactrainError, torch.OutOfMemoryError, NotImplementedError))
        others |= isinstance(error, TypeError) and "forward()" not in str(error)  # of the user's own code
        if others or not isinstance(first, torch.Tensor | Mapping):
            raise
        if isinstance(first, Mapping):
            keys = ", ".join(map(str, first))
            raise DataError(f"network and loss do not take a batch with the keys {keys}: {error}") from error
        advice = ""
        if "type" in str(error):
            advice = f". These are {first.dtype}: let your batches hold numbers of the network's type, as in x.float()"
        raise DataError(
            f"network and loss do not take the training data, of which a batch of inputs has the shape {tuple(first.shape)} "
            f"(examples first): {error}{advice}"
        ) from error


@dataclass(frozen=True)
class Untrained:
    """What the untrained network shows on its training data.

    Attributes:
        scores: Its scores.
        steps: Number of batches per epoch.
    """

    scores: Scores
    steps: int

    @property
    def n(self) -> int:
        """Number of examples."""
        return int(self.scores["n"])

    @property
    def loss(self) -> float:
        """Mean loss."""
        return self.scores["loss"]


def measure_untrained(model: nn.Module, batches: Batches, loss: Loss) -> Untrained:
    """Measure the untrained network, and count examples and batches.

    Raises:
        DataError: The loss is not finite.
    """
    steps = 0

    def counted() -> Iterator[Any]:
        nonlocal steps
        for batch in batches.ordered():
            steps += 1
            yield batch

    with batch_statistics(model):
        scores = measure(model, counted(), loss)
    steps = batches.steps or steps
    if not math.isfinite(scores["loss"]):
        raise DataError(
            f"the loss of the untrained network is {scores['loss']}; look for NaN or huge values in the inputs and "
            "targets, and for a logarithm or a division by zero in the loss"
        )
    return Untrained(scores, steps)
