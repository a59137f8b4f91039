"""One view of all the kinds of data `fit` takes: arrays, a Dataset, a DataLoader, a graph, or any re-iterable of batches."""

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pactrain.problem.augmentation import Augmented, Transform
from pactrain.problem.graph_nodes import is_graph, nodes_of
from pactrain.runtime.errors import DataError
from pactrain.runtime.seeds import generator, seed_global

EVALUATION_BATCH = 1024


class Batches(Protocol):
    """Batches for training (shuffled by a seed) and for measuring (every example once)."""

    def epoch(self, seed: int) -> Iterator[Any]:
        """Training batches of one epoch."""

    def ordered(self) -> Iterator[Any]:
        """Every example once."""

    def subset(self, examples: int, seed: int) -> list[Any]:
        """Batches that hold about `examples` examples chosen at random."""


class TensorBatches:
    """Examples held as tensors on the device; batches are rows picked by index.

    A `transform` changes the inputs of training batches, and of no others; `counts` is how often the training objective
    counts an example (see `augment.py`).
    """

    def __init__(
        self, tensors: tuple[Tensor, ...], batch_size: int, *, transform: Transform | None = None, counts: int = 1
    ) -> None:
        self.tensors = tensors
        self.batch_size = batch_size
        self.transform, self.counts = transform, counts

    def __len__(self) -> int:
        return len(self.tensors[0])

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
        """Every example once, `size` at a time."""
        starts = list(range(0, len(self), size))
        if len(starts) > 1 and len(self) - starts[-1] == 1 < size:
            starts.pop()  # BatchNorm cannot take a single row
        for a, b in itertools.pairwise([*starts, len(self)]):
            yield tuple(t[a:b] for t in self.tensors)

    def split(self, part: float, seed: int) -> "tuple[PriorRows, BoundRows]":
        """Two disjoint sets of rows, the first with `part` of them, chosen by the seed."""
        first, rest = (self._rows(rows.to(self.tensors[0].device)) for rows in split_numbers(len(self), part, seed))
        return (
            PriorRows(first, self.batch_size, transform=self.transform),
            BoundRows(rest, self.batch_size, transform=self.transform, counts=self.counts),
        )

    def subset(self, examples: int, seed: int) -> list[tuple[Tensor, ...]]:
        if examples >= len(self):
            return list(self.ordered())
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))[:examples]
        return list(self.picked(order).ordered())

    def picked(self, rows: Tensor) -> "TensorBatches":
        """The rows with these numbers."""
        return TensorBatches(self._rows(rows.to(self.tensors[0].device)), self.batch_size, counts=self.counts)


def split_numbers(n: int, part: float, seed: int) -> tuple[Tensor, Tensor]:
    """The numbers from 0 to n − 1 in two parts, the first with `part` of them, chosen by the seed."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    cut = round(part * n)
    return order[:cut], order[cut:]


class PriorRows(TensorBatches):
    """Rows that the prior's mean is trained on; a bound must not count them."""


class BoundRows(TensorBatches):
    """Rows that the prior has not seen; the bound counts these and no others."""


class LoaderBatches:
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


def rows(batch: Any) -> int:
    """Number of rows of a batch, as far as its first tensor tells, or as torch-geometric's loaders say of theirs."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim else 1
    if isinstance(said := getattr(batch, "batch_size", None), int):
        return said
    items = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return next((rows(item) for item in items), 1)


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch with all its tensors on the device."""
    if isinstance(batch, Mapping):
        return {k: to_device(v, device) for k, v in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(v, device) for v in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(to_device(v, device) for v in batch)
    return batch.to(device) if hasattr(batch, "to") else batch


def as_batches(
    data: Any,
    *,
    batch_size: int | None,
    device: torch.device,
    dtype: torch.dtype | None = None,
    role: str = "training",
) -> Batches:
    """Read `data` of any kind `fit` takes.

    `batch_size=None` leaves it to the caller to set it; floating-point arrays become `dtype`, torch's default if None.
    """
    if isinstance(data, (TensorBatches, LoaderBatches)):
        return data
    if isinstance(data, Augmented):
        plain = as_batches(data.data, batch_size=batch_size, device=device, dtype=dtype, role=role)
        if not isinstance(plain, TensorBatches):
            raise DataError(
                "only an (X, y) pair of arrays or a TensorDataset can be augmented; others bring their own changes"
            )
        return TensorBatches(plain.tensors, plain.batch_size, transform=data.transform, counts=data.counts)
    if is_graph(data):
        nodes = nodes_of(data, role, device=device, dtype=dtype or torch.get_default_dtype())
        return LoaderBatches([nodes], device)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if _is_pair(data):
        tensors = tuple(
            _tensor(part, i, role, dtype or torch.get_default_dtype()).to(device) for i, part in enumerate(data)
        )
        tensors = (*tensors[:-1], tensors[-1].long() if tensors[-1].dtype == torch.bool else tensors[-1])
        _check_rows(tensors, role)
        return TensorBatches(tensors, batch_size or len(tensors[0]))
    if isinstance(data, tuple) and any(hasattr(part, "toarray") for part in data):
        raise DataError(f"the {role} data holds a sparse matrix; pass its toarray(), or batches of your own making")
    if isinstance(data, DataLoader):
        return LoaderBatches(data, device)
    if isinstance(data, Dataset):
        if not hasattr(data, "__len__"):
            return LoaderBatches(DataLoader(data, batch_size=batch_size or 128), device)
        if not len(data):
            raise DataError(f"the {role} Dataset is empty")
        return LoaderBatches(DataLoader(data, batch_size=batch_size or 128, shuffle=True), device)
    if isinstance(data, Iterator):
        raise DataError(
            f"the {role} data is a {type(data).__name__}, which can be read only once; every epoch and the certificate "
            "read it again: pass a list, a DataLoader, a Dataset or an (X, y) pair"
        )
    if isinstance(data, Mapping) or hasattr(data, "__array__"):
        raise DataError(
            f"the {role} data is one {type(data).__name__}; pass a pair (X, y), or a list of batches ([batch] if this is one)"
        )
    if isinstance(data, Iterable):
        return LoaderBatches(data, device)
    raise DataError(
        f"{role} data of type {type(data).__name__} cannot be read; pass an (X, y) pair of arrays or tensors, "
        "a Dataset, a DataLoader, a torch-geometric graph, or a list of batches"
    )


def check_columns(training: Batches, test: Batches) -> None:
    """Rows of a table must have the same features in both parts.  (Whole numbers may be tokens, of which there may be more.)"""
    if isinstance(training, TensorBatches) and isinstance(test, TensorBatches):
        here, there = training.tensors[0], test.tensors[0]
        tables = all(t.ndim == 2 and t.is_floating_point() for t in (here, there))
        if tables and here.shape[1] != there.shape[1]:
            raise DataError(f"the training rows have {here.shape[1]} features and the test rows {there.shape[1]}")


def _is_pair(data: Any) -> bool:
    if not isinstance(data, tuple) or len(data) < 2 or not hasattr(data[0], "__array__"):
        return False
    return all(hasattr(part, "__array__") or _numbers(part) for part in data)


def _numbers(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(value, (int, float)) for value in part)


def _tensor(part: Any, position: int, role: str, dtype: torch.dtype) -> Tensor:
    if isinstance(part, Tensor):
        tensor = part.detach()
    else:
        array = _array(part)
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"array {position} of the {role} data has dtype {array.dtype}; only numbers can be trained on: "
                "encode categories and texts first (the command line does it for CSV files)"
            )
        # pandas hands out arrays that must not be written to, of which torch would warn
        tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    if tensor.is_floating_point():
        return tensor.to(dtype)
    return tensor if tensor.is_complex() or tensor.dtype == torch.bool else tensor.long()


def _array(part: Any) -> np.ndarray[Any, Any]:
    """As one array; columns of numbers and flags side by side, and those of pandas that may have gaps, become numbers."""
    array = np.asarray(part)
    if array.dtype == object and hasattr(part, "to_numpy"):
        kinds = {t.kind for t in np.atleast_1d(np.asarray(part.dtypes, dtype=object))}
        if kinds <= set("iubf"):
            if part.isna().to_numpy().any():
                return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))  # of which the user is told
            return np.asarray(part.to_numpy(dtype=np.float64 if "f" in kinds else np.int64))
    return array


def _check_rows(tensors: tuple[Tensor, ...], role: str) -> None:
    lengths = [len(t) if t.ndim else 0 for t in tensors]
    if len(set(lengths)) > 1:
        raise DataError(f"the {role} arrays have different numbers of rows: {lengths}")
    if not lengths[0]:
        raise DataError(f"the {role} data has no rows")
    for i, t in enumerate(tensors):
        if t.is_floating_point() and not bool(torch.isfinite(t).all()):
            bad = (~torch.isfinite(t.reshape(len(t), -1))).any(1).nonzero()[0].item()
            raise DataError(
                f"array {i} of the {role} data holds NaN or infinity, first in row {bad}; "
                "impute or drop such rows (the command line imputes missing values)"
            )
