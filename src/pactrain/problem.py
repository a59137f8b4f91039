"""What is to be learned: the data as batches, and the losses on them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pactrain import ranks
from pactrain.auto import Rules
from pactrain.batches import Batches, TensorBatches, check_columns
from pactrain.errors import DataError
from pactrain.losses import AnyLoss, resolve
from pactrain.objectives import training_loss
from pactrain.preparation import channels_last, read_batches
from pactrain.shares import class_shares
from pactrain.whole_numbers import as_network_takes


@dataclass(frozen=True)
class Problem:
    """Data to train on, data to look at, and a loss."""

    batches: Batches
    test: Batches | None
    sample: Any  # a batch, from which shapes are seen, and whether classes are learned
    loss: AnyLoss  # the user's own, which is measured
    trained_on: AnyLoss  # the same, or clipped to [0, 1] where the bound needs it

    def training_sample(self) -> Any:
        """As many examples as a training step sees."""
        if not isinstance(self.batches, TensorBatches):
            return self.sample
        return tuple(t[: self.batches.batch_size] for t in self.batches.tensors)

    def class_shares(self) -> list[float]:
        """Shares of the classes among the training data; empty where they are not known."""
        return class_shares(self.batches, self.loss) or []


def read_problem(
    model: nn.Module,
    data: Any,
    *,
    test: Any,
    loss: str | AnyLoss | None,
    bound: str,
    rules: Rules,
    device: torch.device,
) -> Problem:
    """Read the data onto the device, as the network takes it, and find the loss that fits it."""
    batches, held_out = read_batches(model, data, rules, device, "training"), None
    if test is not None:
        held_out = read_batches(model, test, rules, device, "test")
    if ranks.world() > 1 and not isinstance(batches, TensorBatches):
        raise DataError("several processes can share an (X, y) pair or a TensorDataset, not batches of your own making")
    sample = next(iter(batches.ordered()), None)
    if sample is None:
        raise DataError("the training data has no batch")
    loss = resolve(loss, sample)
    for part in (batches, held_out):
        if part is not None:
            channels_last(model, as_network_takes(model, part, loss), loss)
    if held_out is not None:
        check_columns(batches, held_out)
    if isinstance(batches, TensorBatches):
        sample = next(batches.ordered())
    return Problem(batches, held_out, sample, loss, training_loss(bound, loss))
