"""Fingerprints of data and weights, and signs that data is not what a certificate needs."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pactrain.certification.statement import Caveat
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.call_network import TARGET_KEYS, parts_of
from pactrain.problem.graph_nodes import Nodes, shared_nodes

EXACT, LOOKED_AT, COMPARISONS = 100, 2000, 500_000_000
"""Repeated rows whose repeats are counted, rows whose near repeats are, and numbers that are compared at most for either."""

NEAR = 2
"""Columns in which a near repeat may differ, besides the target: another category changes two columns of zeros and ones."""

WORDS = 1 << 20
"""Words of eight bytes of which fingerprints are made at once."""

MOST_NUMBERS = 50_000_000
"""Numbers in a table that is put together from batches to look for copies."""


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
        for key in sorted(batch, key=lambda key: (key in TARGET_KEYS, str(key))):  # the target last, as in a pair
            yield from _tensors(batch[key])
    else:
        for part in parts_of(batch):
            yield from _tensors(part)


def _only_tensors(batch: Any) -> bool:
    """True if a batch holds nothing beside tensors: texts, say, cannot be compared here."""
    parts = parts_of(batch)
    return all(map(_only_tensors, parts)) if parts else isinstance(batch, Tensor)


def row_digests(batches: TensorBatches) -> NDArray[np.uint64]:
    """A fingerprint of each row, inputs and target together: a random linear function of its words, each well mixed."""
    found, random = np.zeros(len(batches), np.uint64), np.random.default_rng(0)
    for t in batches.examples:
        rows = t.detach().cpu().contiguous().reshape(len(t), -1).view(torch.uint8).numpy()
        words = -(-rows.shape[1] // 8)
        factors = random.integers(0, 2**64, words, np.uint64) | np.uint64(1)
        step = max(1, WORDS // max(1, words))
        for start in range(0, len(rows), step):
            part = np.zeros((len(rows[start : start + step]), 8 * words), np.uint8)
            part[:, : rows.shape[1]] = rows[start : start + step]
            found[start : start + step] += (_mixed(part.view(np.uint64)) * factors).sum(1, dtype=np.uint64)
    return _mixed(found)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each word turned into another, in which every bit follows from many."""
    words = (words ^ (words >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return words ^ (words >> np.uint64(29))


def shared_rows(first: Batches, second: Batches) -> int:
    """How many rows, or nodes of a graph, of `second` are copies of those of `first`; 0 where that cannot be seen."""
    one, other = (next(iter(b.ordered()), None) for b in (first, second))
    if isinstance(one, Nodes) and isinstance(other, Nodes):
        return shared_nodes(one, other)
    here, there = as_table(first), as_table(second)
    if here is None or there is None:
        return 0
    known, sought = np.sort(row_digests(here)), row_digests(there)  # faster than np.isin for a million rows
    found = (known[np.searchsorted(known, sought).clip(max=len(known) - 1)] == sought).nonzero()[0].tolist()
    return 0 if by_chance(here, there, found) else len(found)


def copied_rows(table: TensorBatches) -> list[int]:
    """Numbers of the rows that are copies of earlier ones; none where rows of such data repeat by chance."""
    repeated = np.ones(len(table), bool)
    repeated[np.unique(row_digests(table), return_index=True)[1]] = False
    found = repeated.nonzero()[0].tolist()
    return [] if by_chance(table, table, found) else found


def distinct(batches: Batches) -> tuple[Batches, int]:
    """The data with every copied row once, and the number of copies left out (of arrays: other data stays as it is)."""
    table = batches.table
    if table is None or not (copies := copied_rows(table)):
        return batches, 0
    kept = torch.ones(len(table), dtype=torch.bool, device="cpu")
    kept[copies] = False
    return table.picked(kept.nonzero()[:, 0]), len(copies)


def by_chance(table: TensorBatches, other: TensorBatches, found: Sequence[int]) -> bool:
    """True if rows of `other`, found in `table`, are there by chance: pairs of rows that differ a little are as common.

    Where a table has few distinct values, rows repeat; then there are at least as many near repeats, which differ in one or
    two columns of four or more, in one of two or three, or in the target alone.  Copies of rows come without near repeats.
    """
    if not found:
        return True
    exact = [_repeats(table, other, i)[0] - (other is table) for i in found[:: _step(table, len(found), EXACT)]]
    near = [_repeats(table, other, i)[1] for i in range(0, len(other), _step(table, len(other), LOOKED_AT))]
    return sum(near) / len(near) * len(other) >= sum(exact) / len(exact) * len(found)


def _step(table: TensorBatches, rows: int, most: int) -> int:
    """The stride at which rows are picked for comparison with the table: at most `most` of them, within `COMPARISONS`."""
    numbers = sum(t.numel() for t in table.examples)
    return -(-rows // max(3, min(most, COMPARISONS // max(1, numbers))))


def _repeats(table: TensorBatches, other: TensorBatches, row: int) -> tuple[int, int]:
    """How many rows of `table` equal a row of `other`, and how many nearly do."""
    *features, target = [
        (t != own[row]).reshape(len(t), -1).sum(1) for t, own in zip(table.examples, other.examples, strict=True)
    ]
    inputs = sum(features) if features else target
    assert isinstance(inputs, Tensor)
    columns = sum(t[0].numel() for t in table.examples[: len(features)])
    same = (inputs == 0) & (target == 0)
    return int(same.sum()), int((~same & (inputs <= min(NEAR, columns // 2))).sum())


def as_table(batches: Batches) -> TensorBatches | None:
    """The rows of data side by side, None where batches are not rows of tensors, or are too many to hold."""
    if batches.table is not None:
        return batches.table
    parts: list[list[Tensor]] = []
    numbers = 0
    for batch in batches.ordered():
        tensors = list(_tensors(batch))
        numbers += sum(t.numel() for t in tensors)
        shapes = [t.shape[1:] for t in tensors if t.ndim]
        same = len({len(t) for t in tensors if t.ndim}) == 1 and len(shapes) == len(tensors)
        if of_a_graph(batch) or not _only_tensors(batch) or not same or numbers > MOST_NUMBERS:
            return None
        parts.append(tensors)
    kinds = {tuple((t.shape[1:], t.dtype) for t in tensors) for tensors in parts}
    return TensorBatches(tuple(map(torch.cat, zip(*parts, strict=True))), 1) if len(kinds) == 1 else None


def of_a_graph(batch: Any) -> bool:
    """True if the examples of a batch are nodes of a graph."""
    parts = [batch, *parts_of(batch)]
    return any(hasattr(part, "edge_index") or (isinstance(part, Mapping) and "edge_index" in part) for part in parts)


def data_caveats(batches: Batches) -> list[Caveat]:
    """Reasons, visible in the data itself, why its examples are not independent draws."""
    if of_a_graph(next(iter(batches.ordered()))):
        return [Caveat("nodes of one graph are not independent examples; judge the network on nodes it has not seen")]
    if batches.table is not None:
        return []
    if _changes(batches):
        return [
            Caveat(
                "the data changes from one reading to the next (augmentation?), so n does not count independent examples; "
                "certify with the augmentation switched off"
            )
        ]
    table = as_table(batches)
    copies = copied_rows(table) if table is not None else []
    return [Caveat(f"{len(copies):,} rows are copies of others; remove them")] if copies else []


def _changes(batches: Batches) -> bool:
    """True if the multiset of rows differs between two readings; shuffling alone does not count."""
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
        total += int(row_digests(whole).sum(dtype=np.uint64))
    return total % 2**64
