"""What is to be learned: the data as batches, and the losses on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pactrain.problem.batches import Batches, TensorBatches, as_batches, check_columns
from pactrain.problem.input_types import as_network_takes
from pactrain.problem.losses import AnyLoss, per_example, refusing_loss, resolve
from pactrain.problem.module_modes import restored_buffers, restored_modes
from pactrain.problem.scores import class_shares
from pactrain.runtime import distributed
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.gave_up import gave_up, is_torchs, refusing


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
    trained_on: Callable[[AnyLoss], AnyLoss],
    batch_size: Callable[[int], int],
    device: torch.device,
) -> Problem:
    """Read the data onto the device, as the network takes it, and find the loss that fits it.

    trained_on: from the loss that is measured to the one that is trained on.
    batch_size: from the number of examples to that of a batch.
    """
    batches, held_out = read_batches(model, data, batch_size, device, "training"), None
    if test is not None:
        held_out = read_batches(model, test, batch_size, device, "test")
    if distributed.world() > 1 and not isinstance(batches, TensorBatches):
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
    return Problem(batches, held_out, sample, loss, trained_on(loss))


def read_batches(
    model: nn.Module, data: Any, batch_size: Callable[[int], int], device: torch.device, role: str
) -> Batches:
    """The data as batches on the device, in the precision of the network."""
    size = len(data) if isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__") else None
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    batches = as_batches(data, batch_size=batch_size(size) if size else None, device=device, dtype=dtype, role=role)
    if isinstance(batches, TensorBatches):
        batches.batch_size = batch_size(len(batches))
    return batches


def counts(batches: Batches) -> int:
    """How often the training objective counts an example: once, unless a heuristic for augmented data says otherwise."""
    return batches.counts if isinstance(batches, TensorBatches) else 1


def channels_last(model: nn.Module, batches: Batches, loss: AnyLoss) -> None:
    """Lay images out with their channels last where the network has 2-d convolutions and takes them so: the same numbers, sooner."""
    if not isinstance(batches, TensorBatches) or not any(isinstance(m, nn.Conv2d) for m in model.modules()):
        return
    images, *others = batches.tensors
    if images.ndim != 4 or not images.is_floating_point():
        return
    trial = (images[:2].to(memory_format=torch.channels_last), *(t[:2] for t in others))
    params = [p for p in model.parameters() if p.requires_grad]
    try:
        with restored_modes(model), restored_buffers(model):
            for mode in (True, False):
                model.train(mode)
                losses = per_example(refusing_loss(loss), refusing(model), trial)
                torch.autograd.grad(losses.sum(), params, allow_unused=True)
    except (PactrainError, RuntimeError) as error:  # a network that calls view(), say, needs the usual layout
        if not is_torchs(error):
            gave_up("Images were not laid out with their channels last", error, instead="training takes longer")
        return
    batches.tensors = (images.to(memory_format=torch.channels_last), *others)
