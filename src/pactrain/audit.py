"""Fingerprints of data and weights, and signs that data is not what a certificate needs."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from pactrain.batches import Batches, TensorBatches
from pactrain.nodes import Nodes, shared_nodes


def digest_tensors(tensors: Iterable[Tensor]) -> str:
    """Fingerprint of the values, shapes and types of tensors."""
    state = hashlib.blake2b(digest_size=16)
    for t in tensors:
        _feed(state, t)
    return state.hexdigest()


def digest_data(batches: Batches) -> str:
    """Fingerprint of the data in the order it is read."""
    return digest_tensors(t for batch in batches.ordered() for t in _tensors(batch))


def _feed(state: Any, tensor: Tensor) -> None:
    flat = tensor.detach().cpu().contiguous()
    state.update(f"{tuple(flat.shape)}{flat.dtype}".encode())
    state.update(flat.reshape(-1).view(torch.uint8).numpy().tobytes() if flat.numel() else b"")


def _tensors(batch: Any) -> Iterable[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for key in sorted(batch, key=str):
            yield from _tensors(batch[key])
    elif isinstance(batch, (tuple, list)):
        for item in batch:
            yield from _tensors(item)


def row_digests(batches: TensorBatches) -> list[bytes]:
    """A fingerprint of each row, inputs and target together."""
    columns = [t.detach().cpu().contiguous().reshape(len(t), -1) for t in batches.tensors]
    blocks = [c.view(torch.uint8).numpy() for c in columns]
    return [
        hashlib.blake2b(b"".join(block[i].tobytes() for block in blocks), digest_size=16).digest()
        for i in range(len(columns[0]))
    ]


def shared_rows(first: Batches, second: Batches) -> int:
    """How many rows, or nodes of a graph, of `second` stand in `first` too; 0 where the data cannot be read row by row."""
    one, other = (next(iter(b.ordered()), None) for b in (first, second))
    if isinstance(one, Nodes) and isinstance(other, Nodes):
        return shared_nodes(one, other)
    if not (isinstance(first, TensorBatches) and isinstance(second, TensorBatches)):
        return 0
    known = set(row_digests(first))
    return sum(row in known for row in row_digests(second))


def of_a_graph(batch: Any) -> bool:
    """Are the examples of a batch nodes of a graph?"""
    parts = [batch, *batch] if isinstance(batch, (tuple, list)) else [batch]
    return any(hasattr(part, "edge_index") or (isinstance(part, Mapping) and "edge_index" in part) for part in parts)


def data_caveats(batches: Batches) -> list[str]:
    """Reasons, visible in the data itself, why its examples are not independent draws."""
    if of_a_graph(next(iter(batches.ordered()))):
        return [
            "nodes of one graph are not independent examples, so nothing is certified; judge the network on nodes it has "
            "not seen"
        ]
    if not isinstance(batches, TensorBatches) and _changes(batches):
        return [
            "the data changes from one reading to the next (augmentation?), so n does not count independent examples; "
            "certify with the augmentation switched off"
        ]
    return []


def _changes(batches: Batches) -> bool:
    """Does the multiset of rows differ between two readings?  Shuffling alone does not count."""
    return _unordered(batches) != _unordered(batches)


def _unordered(batches: Batches) -> int:
    """A fingerprint of the rows that does not depend on their order."""
    total = 0
    for batch in batches.ordered():
        tensors = [t.detach().cpu().contiguous() for t in _tensors(batch)]
        rows = {len(t) for t in tensors if t.ndim}
        if len(rows) != 1:
            total += int(digest_tensors(tensors), 16)
            continue
        whole = TensorBatches(tuple(t for t in tensors if t.ndim), 1)
        total += sum(int.from_bytes(row, "little") for row in row_digests(whole))
    return total
