"""The arrays of a graph file, checked in full: column numbers out of range would be written outside the process's own memory."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import forms_of

KEYS = {f"{part}_{key}" for part in ("adj", "attr") for key in ("data", "indices", "indptr", "shape")} | {"labels"}
MASKS = ("train_mask", "val_mask", "test_mask")

MOST_FEATURES = 1_000_000_000
"""Numbers in the table of nodes and features, which is held densely; the largest published graph has 172 million."""

Arrays = dict[str, NDArray[Any]]


def is_graph_file(path: Path) -> bool:
    """True if an NPZ file has the arrays of `CitationFull`."""
    return set(forms_of(path)) >= KEYS - {"labels"}


def check_graph(arrays: Arrays, path: str | Path) -> None:
    """Raise DataError unless the arrays describe one graph; labels that are missing become −1, which means unknown."""
    if missing := sorted(KEYS - {"labels"} - set(arrays)):
        raise DataError(f"{path} lacks the arrays {', '.join(missing)} of a graph")
    nodes, columns = _shape(arrays, "adj", path)
    rows, features = _shape(arrays, "attr", path)
    if not nodes == columns == rows:
        raise DataError(f"{path}: the shapes of adj and attr do not belong to one graph")
    if nodes * features > MOST_FEATURES:
        raise DataError(f"{path}: {nodes:,} nodes of {features:,} features are more than can be held in memory")
    for part, width in (("adj", nodes), ("attr", features)):
        _check_rows(arrays, part, nodes, width, path)
    arrays.setdefault("labels", np.full(nodes, -1))
    for name in ("labels", *(mask for mask in MASKS if mask in arrays)):
        if arrays[name].shape != (nodes,):
            raise DataError(f"{path}: {name} has shape {arrays[name].shape}; the graph has {nodes} nodes")
        if arrays[name].dtype.kind not in ("iu" if name == "labels" else "iub"):
            wanted = "class numbers from 0 on" if name == "labels" else "true or false"
            raise DataError(f"{path}: {name} holds {arrays[name].dtype}; it must be {wanted}")
    labels = arrays["labels"]
    if not -1 <= labels.min() <= labels.max() < nodes:
        odd = labels.min() if labels.min() < -1 else labels.max()
        raise DataError(
            f"{path}: labels hold {odd}; classes are numbered from 0 on without gaps, −1 is unknown, and "
            f"{nodes} nodes have no more classes than that"
        )


def _shape(arrays: Arrays, part: str, path: str | Path) -> tuple[int, int]:
    shape = arrays[f"{part}_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 1:
        raise DataError(f"{path}: {part}_shape must be two whole numbers above 0")
    return int(shape[0]), int(shape[1])


def _check_rows(arrays: Arrays, part: str, rows: int, width: int, path: str | Path) -> None:
    """Compressed rows: entry k of row i is at column indices[indptr[i] + k]."""
    values, indices, starts = (arrays[f"{part}_{key}"] for key in ("data", "indices", "indptr"))
    whole = all(a.ndim == 1 and a.dtype.kind in "iu" for a in (indices, starts))
    if not whole or values.ndim != 1 or values.dtype.kind not in "iufb":
        raise DataError(
            f"{path}: {part}_data must be numbers, {part}_indices and {part}_indptr whole numbers, in one row"
        )
    if len(starts) != rows + 1 or starts[0] != 0 or starts[-1] != len(indices) or len(indices) != len(values):
        raise DataError(f"{path}: {part}_indptr, {part}_indices and {part}_data are not of the lengths of {rows} rows")
    if (starts[1:] < starts[:-1]).any():
        raise DataError(f"{path}: {part}_indptr decreases; it must say where each row begins")
    if len(indices) and not 0 <= indices.min() <= indices.max() < width:
        odd = indices.min() if indices.min() < 0 else indices.max()
        raise DataError(f"{path}: {part}_indices holds {odd}; there are columns 0 to {width - 1}")
    if not np.isfinite(values).all():
        raise DataError(f"{path}: {part}_data holds NaN or infinity")
    if values.dtype.itemsize not in (1, 4, 8):  # types that scipy and torch do not take
        arrays[f"{part}_data"] = values.astype(np.float32)
