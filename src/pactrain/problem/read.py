"""Reading model, data and loss into a `Problem`: the data as batches, and the losses on them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import Batches, PriorRows, TensorBatches, split_numbers
from pactrain.problem.input_types import as_network_takes
from pactrain.problem.loss_weights import ClassWeight, RowWeighted, weigh_classes, weigh_rows
from pactrain.problem.losses import AnyLoss, Loss, per_example
from pactrain.problem.module_modes import restored_buffers, restored_modes
from pactrain.problem.read_data import as_batches, check_columns
from pactrain.problem.scores import Metrics, class_shares
from pactrain.problem.uncounted_part import FIRST_HALF
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.gave_up import gave_up, is_torchs, refusing
from pactrain.runtime.seeds import derive, prior_seed

START, COUNTED_BLOCKS = 0.4, 10
"""For the progressive certificate: part of the rows that is trained on first, and blocks of the rows that it counts."""

PARTS = 6
"""Parts of the rows for a recursive certificate, each as large as all before it."""


@dataclass(frozen=True)
class Problem:
    """What is to be learned: data, and a loss.

    Attributes:
        batches: The examples to train on, which the bound counts.
        test: Examples that are only looked at.
        sample: A batch, from which shapes are seen, and whether classes are learned.
        loss: The user's own loss, which is measured.
        trained_on: The same loss, or clipped to [0, 1] where the bound needs it.
        prior_rows: Examples on which the prior is trained first; the bound does not count them.
        blocks: Further examples, which the network is judged by before it is trained on them, one block after the other.
        metrics: The user's own scores.
    """

    batches: Batches
    test: Batches | None
    sample: Any
    loss: Loss
    trained_on: Loss
    prior_rows: PriorRows | None = None
    blocks: tuple[TensorBatches, ...] = ()
    metrics: Metrics = field(default_factory=dict)

    def grown(self, blocks: int) -> "Problem":
        """The problem with so many of its blocks among the examples to train on."""
        table = self.batches.table
        assert table is not None or not self.blocks
        if table is None or not blocks:
            return self
        return replace(self, batches=table.joined(self.blocks[:blocks]), blocks=self.blocks[blocks:])

    def some(self, rows: int, seed: int) -> "Problem":
        """The problem with at most so many rows, chosen at random, for training and for the test."""
        seed = derive(seed, "scored rows")
        test = None if self.test is None else self.test.sample(rows, seed)
        return replace(self, batches=self.batches.sample(rows, seed), test=test)

    def training_sample(self) -> Any:
        """As many examples as a training step sees."""
        table = self.batches.table
        return self.sample if table is None else tuple(t[: table.batch_size] for t in table.tensors)

    def class_shares(self) -> list[float]:
        """Shares of the classes among the training data; empty where they are not known."""
        return class_shares(self.batches, self.loss) or []


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How data is to be read.

    Attributes:
        loss: A name, the user's own function, or None for the usual loss of such targets.
        batch_size: From the number of examples to that of a batch.
        device: Where the data goes.
        trained_on: From the loss that is measured to the one that is trained on.
        prior_data: Part of the examples on which the prior is trained.
        certificate: "progressive" or "recursive" if the examples are to be met block by block.
        seed: Chooses these examples, and the order of blocks.
        class_weight: Weights of the classes in the loss.
        sample_weight: Weights of the training rows in the loss.
        metrics: The user's own scores.
    """

    loss: str | AnyLoss | None
    batch_size: Callable[[int], int]
    device: torch.device
    trained_on: Callable[[Loss], Loss] = lambda loss: loss
    prior_data: float = 0.0
    certificate: str = "standard"
    seed: int = 0
    class_weight: ClassWeight | None = None
    sample_weight: Any = None
    metrics: Metrics = field(default_factory=dict)


def read_problem(model: nn.Module, data: Any, test: Any, reading: Reading) -> Problem:
    """Read the data onto the device, as the network takes it, and find the loss that fits it.

    Args:
        model: The network that is to be trained.
        data: The training data, in any form that `fit` takes.
        test: Test data, or None.
        reading: How they are read.

    Returns:
        The problem, with rows for the prior set aside if `reading` asks for them.

    Raises:
        DataError: The data is empty, or cannot be divided as asked.
    """
    batch_size, device = reading.batch_size, reading.device
    batches, held_out = read_batches(model, data, batch_size, device, "training"), None
    if test is not None:
        held_out = read_batches(model, test, batch_size, device, "test")
    sample = next(iter(batches.ordered()), None)
    if sample is None:
        raise DataError("the training data has no batch")
    loss = as_loss(reading.loss, sample if batches.table is None else batches.table.tensors, model)
    for part in (batches, held_out):
        if part is not None:
            channels_last(model, as_network_takes(model, part, loss), loss)
    if held_out is not None:
        check_columns(batches, held_out)
    loss = _weighted(loss, batches, held_out, reading)
    if batches.table is not None:
        sample = next(batches.ordered())
    problem = Problem(batches, held_out, sample, loss, reading.trained_on(loss), metrics=reading.metrics)
    if reading.certificate != "standard":
        return in_blocks(problem, reading.certificate, reading.seed)
    return set_aside(problem, reading.prior_data, reading.seed) if reading.prior_data else problem


def read_held_out(model: nn.Module, data: Any, loss: Loss, reading: Reading, role: str) -> Batches:
    """Rows that are not trained on, as the network takes them; raises DataError if they cannot be read."""
    batches = read_batches(model, data, reading.batch_size, reading.device, role)
    channels_last(model, as_network_takes(model, batches, loss), loss)
    return batches


def _weighted(loss: Loss, batches: Batches, held_out: Batches | None, reading: Reading) -> Loss:
    """The loss with the weights that were asked for; weights of rows become a part of the batches."""
    if reading.class_weight is not None:
        loss = weigh_classes(loss, reading.class_weight, batches)
    if reading.sample_weight is None:
        return loss
    weigh_rows(batches, reading.sample_weight, loss)
    if held_out is not None:
        weigh_rows(held_out, None, loss)
    return RowWeighted.of(loss)


def set_aside(problem: Problem, part: float, seed: int) -> Problem:
    """Set part of the rows aside for the prior; the bound counts the rest.

    Raises:
        DataError: The rows cannot be told apart, or are too few.
        PactrainError: `part` does not lie between 0 and 1.
    """
    table = problem.batches.table
    if table is None:
        raise DataError("prior_data needs an (X, y) pair or a TensorDataset, whose rows can be told apart")
    if not 0 < part < 1:
        raise PactrainError(f"prior_data={part} must lie between 0 and 1: the part of the data the prior is trained on")
    first, rest = table.split(part, prior_seed(seed))
    if not len(first) or not len(rest):
        raise DataError(f"prior_data={part} of {len(table)} rows leaves one of the two parts empty")
    return replace(problem, batches=rest, prior_rows=first)


def in_blocks(problem: Problem, certificate: str, seed: int) -> Problem:
    """Put the rows in random order, and keep all but the first of them back in blocks.

    Of a progressive certificate, the first block belongs to the first half of the rows, the others make up the second half; of a
    recursive one, each block is as large as all rows before it.

    Raises:
        DataError: The rows cannot be told apart, are too few, or have no classes to be wrong about.
    """
    table, asked = problem.batches.table, f"certificate={certificate!r}"
    if table is None:
        raise DataError(f"{asked} needs an (X, y) pair or a TensorDataset, whose rows can be told apart")
    if problem.loss.task != "classification":
        raise DataError(f'{asked} counts wrong classes, and this is no classification; use "standard"')
    n = len(table)
    ends, least = _halves(n) if certificate == "recursive" else _progressive_ends(n)
    if n < least:
        raise DataError(f"{asked} needs at least {least} rows, and there are {n}")
    order = torch.cat(split_numbers(n, FIRST_HALF, prior_seed(seed)))
    first, *blocks = table.reordered(order).blocks(ends)
    return replace(problem, batches=first, blocks=tuple(blocks))


def _progressive_ends(n: int) -> tuple[list[int], int]:
    """Where blocks end, and the fewest rows that are enough."""
    half = round(FIRST_HALF * n)
    return [round(START * n), *(half + (n - half) * i // COUNTED_BLOCKS for i in range(COUNTED_BLOCKS + 1))], 5


def _halves(n: int) -> tuple[list[int], int]:
    """Where blocks end if each is as large as all before it, and the fewest rows that are enough."""
    return [n >> level for level in range(PARTS)][::-1], 2**PARTS


def read_batches(
    model: nn.Module, data: Any, batch_size: Callable[[int], int], device: torch.device, role: str
) -> Batches:
    """The data as batches on the device, in the precision of the network."""
    size = len(data) if isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__") else None
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    batches = as_batches(data, batch_size=batch_size(size) if size else None, device=device, dtype=dtype, role=role)
    if batches.table is not None:
        batches.table.batch_size = batch_size(len(batches.table))
    return batches


def channels_last(model: nn.Module, batches: Batches, loss: Loss) -> None:
    """Lay images out with their channels last where the network has 2-d convolutions and takes them so: the same numbers, sooner."""
    table = batches.table
    if table is None or not any(isinstance(m, nn.Conv2d) for m in model.modules()):
        return
    images, *others = table.tensors
    if images.ndim != 4 or not images.is_floating_point():
        return
    trial = (images[:2].to(memory_format=torch.channels_last), *(t[:2] for t in others))
    params = [p for p in model.parameters() if p.requires_grad]
    try:
        with restored_modes(model), restored_buffers(model):
            for mode in (True, False):
                model.train(mode)
                losses = per_example(loss.guarded(), refusing(model), trial)
                torch.autograd.grad(losses.sum(), params, allow_unused=True)
    except (PactrainError, RuntimeError) as error:  # a network that calls view(), say, needs the usual layout
        if not is_torchs(error):
            gave_up("Images were not laid out with their channels last", error, instead="training takes longer")
        return
    table.tensors = (images.to(memory_format=torch.channels_last), *others)
