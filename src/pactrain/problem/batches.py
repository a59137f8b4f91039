"""`Batches`: one interface to all kinds of data, for training, for measuring, and for single rows of tensors."""

import copy
import itertools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, Subset

from pactrain.problem.augmentation import Transform
from pactrain.problem.call_network import check_plain, parts_of
from pactrain.runtime.seeds import generator, seed_global

EVALUATION_BATCH = 1024

EVERY_EXAMPLE = (RandomSampler, SequentialSampler)
"""What chooses the examples of a DataLoader that takes all of a data set."""


class Batches(ABC):
    """Batches for training (shuffled by a seed) and for measuring (every example once).

    Attributes:
        transform: What changes the inputs of training batches, and of no others; None if nothing does.
        counts: How often the training objective counts an example: once, unless a heuristic for augmented data says otherwise.

    Example:
        >>> batches: Batches = TensorBatches((torch.zeros(10, 3), torch.zeros(10)), batch_size=5)
        >>> batches.steps, [len(x) for x, y in batches.epoch(seed=0)], [len(x) for x, y in batches.chunks(4)]
        (2, [5, 5], [4, 4, 2])
    """

    transform: Transform | None = None
    counts: int = 1

    @property
    def table(self) -> "TensorBatches | None":
        """The data as rows of tensors, which can be taken one by one; None where examples come in batches of the user's own."""
        return None

    @property
    def steps(self) -> int | None:
        """Training batches in an epoch; None if that is known only after reading them."""
        return None

    @abstractmethod
    def epoch(self, seed: int) -> Iterator[Any]:
        """Shuffle the examples for one epoch of training.

        Args:
            seed: Decides the order, and how inputs are changed.

        Returns:
            Training batches.
        """

    @abstractmethod
    def ordered(self) -> Iterator[Any]:
        """Go through every example once, in order.

        Returns:
            Batches of a size for measuring.
        """

    def chunks(self, size: int) -> Iterator[Any]:
        """Go through every example once, in order, a few at a time.

        Args:
            size: Rows in a batch; the user's own batches stay as they are.

        Returns:
            Batches.
        """
        return self.ordered()

    @abstractmethod
    def subset(self, examples: int, seed: int) -> list[Any]:
        """Choose examples at random.

        Args:
            examples: About how many.
            seed: Decides which.

        Returns:
            Batches that hold them.
        """

    @abstractmethod
    def sample(self, examples: int, seed: int) -> "Batches":
        """Choose examples at random, of which a part is read at a time.

        Args:
            examples: How many; about as many where the batches are the user's own.
            seed: Decides which.

        Returns:
            Batches of them.
        """

    @abstractmethod
    def mapped(self, change: Callable[[Any], Any]) -> Self:
        """Change every batch.

        Args:
            change: Function of a batch that treats its rows independently.

        Returns:
            Batches of the changed data, of the type of these.
        """


class TensorBatches(Batches):
    """Examples held as tensors on the device; batches are rows picked by index."""

    def __init__(
        self,
        tensors: tuple[Tensor, ...],
        batch_size: int,
        *,
        transform: Transform | None = None,
        counts: int = 1,
        weighted: bool = False,
    ) -> None:
        self.tensors = tensors
        self.batch_size = batch_size
        self.transform, self.counts, self.weighted = transform, counts, weighted

    def __len__(self) -> int:
        return len(self.tensors[0])

    @property
    def examples(self) -> tuple[Tensor, ...]:
        """Inputs and targets, without the weights that the rows of a weighted table end with."""
        return self.tensors[:-1] if self.weighted else self.tensors

    @property
    def table(self) -> "TensorBatches":
        return self

    def _rows(self, index: Tensor) -> tuple[Tensor, ...]:
        """Some rows; the plain way of picking them keeps images with their channels last, the quick one does not."""
        return tuple(t[index] if t.ndim == 4 else t.index_select(0, index) for t in self.tensors)

    @property
    def steps(self) -> int:
        """Batches an epoch, all of nearly the same size: a tiny last one would be mostly noise."""
        return max(1, round(len(self) / self.batch_size))

    def epoch(self, seed: int) -> Iterator[tuple[Tensor, ...]]:
        for step, batch in enumerate(self._shuffled(seed)):
            if self.transform is None:
                yield batch
            else:
                changes = generator(batch[0].device, seed, "augment", step)
                yield self.transform(batch[0], changes), *batch[1:]

    def _shuffled(self, seed: int) -> Iterator[tuple[Tensor, ...]]:
        n = len(self)
        if self.batch_size >= n:
            yield self.tensors
            return
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(self.tensors[0].device)
        edges = [n * i // self.steps for i in range(self.steps + 1)]
        for a, b in itertools.pairwise(edges):
            yield self._rows(order[a:b])

    def ordered(self) -> Iterator[tuple[Tensor, ...]]:
        return self.chunks(EVALUATION_BATCH)

    def chunks(self, size: int) -> Iterator[tuple[Tensor, ...]]:
        starts = list(range(0, len(self), size))
        if len(starts) > 1 and len(self) - starts[-1] == 1 < size:
            starts.pop()  # BatchNorm cannot take a single row
        for a, b in itertools.pairwise([*starts, len(self)]):
            yield tuple(t[a:b] for t in self.tensors)

    def split(self, part: float, seed: int) -> "tuple[PriorRows, BoundRows]":
        """Two disjoint sets of rows, the first with `part` of them, chosen by the seed."""
        first, rest = (self._rows(rows.to(self.tensors[0].device)) for rows in split_numbers(len(self), part, seed))
        return (
            PriorRows(first, self.batch_size, transform=self.transform, weighted=self.weighted),
            BoundRows(rest, self.batch_size, transform=self.transform, counts=self.counts, weighted=self.weighted),
        )

    def subset(self, examples: int, seed: int) -> list[tuple[Tensor, ...]]:
        if examples >= len(self):
            return list(self.ordered())
        return list(self.sample(examples, seed).ordered())

    def sample(self, examples: int, seed: int) -> "TensorBatches":
        return self.picked(torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))[:examples])

    def mapped(self, change: Callable[[Any], Any]) -> Self:
        changed = copy.copy(self)
        changed.tensors = change(self.tensors)
        return changed

    def reordered(self, order: Tensor) -> Self:
        """A copy of the data with its rows in this order."""
        index = order.to(self.tensors[0].device)
        return self.mapped(lambda _: self._rows(index))

    def joined(self, others: "Sequence[TensorBatches]") -> Self:
        """These rows and those of others, in that order."""
        if not others:
            return self
        parts = zip(self.tensors, *(other.tensors for other in others), strict=True)
        return self.mapped(lambda _: tuple(map(torch.cat, parts)))

    def blocks(self, ends: Sequence[int]) -> "list[TensorBatches]":
        """The rows in blocks, one up to each of these numbers; none is empty."""
        cuts = sorted({0, *ends})
        return [self._between(a, b) for a, b in itertools.pairwise(cuts)]

    def _between(self, start: int, stop: int) -> Self:
        return self.mapped(lambda tensors: tuple(t[start:stop] for t in tensors))

    def picked(self, rows: Tensor) -> "TensorBatches":
        """The rows with these numbers."""
        picked = self._rows(rows.to(self.tensors[0].device))
        return TensorBatches(picked, self.batch_size, counts=self.counts, weighted=self.weighted)


def split_numbers(n: int, part: float, seed: int) -> tuple[Tensor, Tensor]:
    """The numbers from 0 to n − 1 in two parts, the first with `part` of them, chosen by the seed."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    cut = round(part * n)
    return order[:cut], order[cut:]


class PriorRows(TensorBatches):
    """Rows that the prior's mean is trained on; a bound must not count them."""


class BoundRows(TensorBatches):
    """Rows that the prior has not seen; the bound counts these and no others."""


class LoaderBatches(Batches):
    """Batches that come from the user's own iterable; its order is its own."""

    def __init__(self, source: Iterable[Any], device: torch.device) -> None:
        self.source = source
        self.device = device

    def epoch(self, seed: int) -> Iterator[Any]:
        seed_global(seed)  # a shuffling DataLoader draws its order from the global generator, or from its own
        own = getattr(self.source, "generator", None)
        if isinstance(own, torch.Generator):
            own.manual_seed(seed)
        return self.ordered()

    def ordered(self) -> Iterator[Any]:
        for batch in self.source:
            yield to_device(batch, self.device)

    def subset(self, examples: int, seed: int) -> list[Any]:
        chance = random.Random(seed)
        kept: list[Any] = []
        room = 0
        with torch.random.fork_rng(devices=[]):
            seed_global(seed)
            for seen, batch in enumerate(self.ordered()):
                room = room or math.ceil(examples / max(1, rows(batch)))
                if len(kept) < room:
                    kept.append(batch)
                elif (place := chance.randrange(seen + 1)) < room:  # every batch is kept with the same probability
                    kept[place] = batch
        return kept

    def sample(self, examples: int, seed: int) -> "LoaderBatches":
        source = self.source
        if not isinstance(source, DataLoader) or source.batch_size is None or type(source.sampler) not in EVERY_EXAMPLE:
            return LoaderBatches(self.subset(examples, seed), self.device)
        data: Any = source.dataset
        some = Subset(data, random.Random(seed).sample(range(len(data)), min(examples, len(data))))
        loader = DataLoader(some, source.batch_size, collate_fn=source.collate_fn, num_workers=source.num_workers)
        return LoaderBatches(loader, self.device)

    def mapped(self, change: Callable[[Any], Any]) -> Self:
        changed = copy.copy(self)
        changed.source = _Mapped(self.source, change)
        return changed


class _Mapped:
    """Batches of another source, each changed by a function; can be read again and again if the source can."""

    def __init__(self, source: Iterable[Any], change: Callable[[Any], Any]) -> None:
        self.source, self.change = source, change

    def __iter__(self) -> Iterator[Any]:
        return map(self.change, self.source)


def rows(batch: Any) -> int:
    """Number of rows of a batch, as far as its first tensor tells, or as torch-geometric's loaders say of theirs."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim else 1
    if isinstance(said := getattr(batch, "batch_size", None), int):
        return said
    return next((rows(item) for item in parts_of(batch)), 1)


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch with all its tensors on the device."""
    if isinstance(batch, Mapping):
        return {k: to_device(v, device) for k, v in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(v, device) for v in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(to_device(v, device) for v in batch)
    if isinstance(batch, Tensor):
        check_plain(batch, "a part of a batch")
    return batch.to(device) if hasattr(batch, "to") else batch
