"""Data of any kind that `fit` takes, read as `Batches`: arrays, a Dataset, a DataLoader, a graph, or any re-iterable of batches."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pactrain.problem.augmentation import Augmented
from pactrain.problem.batches import Batches, LoaderBatches, TensorBatches
from pactrain.problem.call_network import check_plain
from pactrain.problem.graph_nodes import is_graph, nodes_of
from pactrain.runtime.errors import DataError


def as_batches(
    data: Any,
    *,
    batch_size: int | None,
    device: torch.device,
    dtype: torch.dtype | None = None,
    role: str = "training",
) -> Batches:
    """Read `data` of any kind `fit` takes.

    Args:
        data: Arrays, a Dataset, a DataLoader, a graph, a re-iterable of batches, or `Batches`, which are returned unchanged.
        batch_size: Examples in a training batch; None leaves it to the caller to set it.
        device: Where the tensors go.
        dtype: What floating-point arrays become; torch's default if None.
        role: "training", "validation" or "test", for messages and for the masks of a graph.

    Returns:
        The data as batches.

    Raises:
        DataError: If the data cannot be read, is empty, or holds NaN or infinity.
    """
    if isinstance(data, Batches):
        return data
    floats = dtype or torch.get_default_dtype()
    if isinstance(data, Augmented):
        plain = as_batches(data.data, batch_size=batch_size, device=device, dtype=dtype, role=role).table
        if plain is None:
            what = "only an (X, y) pair of arrays or a TensorDataset can be augmented"
            raise DataError(f"{what}; others bring their own changes")
        return TensorBatches(plain.tensors, plain.batch_size, transform=data.transform, counts=data.counts)
    if is_graph(data):
        return LoaderBatches([nodes_of(data, role, device=device, dtype=floats)], device)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if _is_pair(data):
        tensors = tuple(t.to(device) for t in _tensors(data, role, floats))
        return TensorBatches(tensors, batch_size or len(tensors[0]))
    if isinstance(data, DataLoader):
        return LoaderBatches(data, device)
    if isinstance(data, Dataset):
        return LoaderBatches(_loader(data, batch_size or 128, role), device)
    if refusal := _refusal(data, role):
        raise DataError(refusal)
    return LoaderBatches(data, device)


def _refusal(data: Any, role: str) -> str:
    """Why data is no series of batches that can be read again and again, with what to do; empty if it is one."""
    if isinstance(data, tuple) and any(hasattr(part, "toarray") for part in data):
        return f"the {role} data holds a sparse matrix; pass its toarray(), or batches of your own making"
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], Mapping) and hasattr(data[1], "__array__"):
        return (
            f"the {role} data is a pair of named inputs and a target; pass a DataLoader whose batches are mappings with the target in "
            "them, {..., 'y': target}, or a list of such batches"
        )
    if isinstance(data, Iterator):
        return (
            f"the {role} data is a {type(data).__name__}, which can be read only once; every epoch and the certificate "
            "read it again: pass a list, a DataLoader, a Dataset or an (X, y) pair"
        )
    if isinstance(data, Mapping) or hasattr(data, "__array__"):
        return f"the {role} data is one {type(data).__name__}; pass a pair (X, y), or a list of batches ([batch] if this is one)"
    if isinstance(data, Iterable):
        return ""
    return (
        f"{role} data of type {type(data).__name__} cannot be read; pass an (X, y) pair of arrays or tensors, "
        "a Dataset, a DataLoader, a torch-geometric graph, or a list of batches"
    )


def _loader(data: Any, batch_size: int, role: str) -> DataLoader[Any]:
    """The batches of a Dataset, in a new order each time if it has a length."""
    if not hasattr(data, "__len__"):
        return DataLoader(data, batch_size=batch_size)
    if not len(data):
        raise DataError(f"the {role} Dataset is empty")
    return DataLoader(data, batch_size=batch_size, shuffle=True)


def _tensors(data: Any, role: str, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """The arrays of a pair as tensors, checked; targets of True and False become numbers of classes."""
    *inputs, target = (_tensor(part, i, role, dtype) for i, part in enumerate(data))
    tensors = (*inputs, target.long() if target.dtype == torch.bool else target)
    _check_rows(tensors, role)
    return tensors


def check_columns(training: Batches, test: Batches, role: str = "test") -> None:
    """Rows of a table must have the same features in both parts.  (Whole numbers may be tokens, of which there may be more.)"""
    if training.table is not None and test.table is not None:
        here, there = training.table.tensors[0], test.table.tensors[0]
        tables = all(t.ndim == 2 and t.is_floating_point() for t in (here, there))
        if tables and here.shape[1] != there.shape[1]:
            raise DataError(f"the training rows have {here.shape[1]} features and the {role} rows {there.shape[1]}")


def _is_pair(data: Any) -> bool:
    return (
        isinstance(data, tuple) and len(data) > 1 and all(hasattr(part, "__array__") or _numbers(part) for part in data)
    )


def _numbers(part: Any) -> bool:
    """True for numbers in lists, which may be nested."""
    return isinstance(part, list) and all(isinstance(value, (int, float)) or _numbers(value) for value in part)


def _tensor(part: Any, position: int, role: str, dtype: torch.dtype) -> Tensor:
    if isinstance(part, Tensor):
        check_plain(part, f"array {position} of the {role} data")
        tensor = part.detach()
    else:
        if np.ma.is_masked(part):
            raise DataError(f"array {position} of the {role} data has masked values; fill them in, or drop such rows")
        array = _array(part)
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"array {position} of the {role} data has dtype {array.dtype}; only numbers can be trained on: "
                "encode categories and texts first (pactrain.sklearn.PACBayesClassifier takes names of classes, the command line "
                "whole CSV files)"
            )
        # pandas hands out arrays that must not be written to, of which torch would warn
        tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    if tensor.is_floating_point():
        return tensor.to(dtype)
    return tensor if tensor.is_complex() or tensor.dtype == torch.bool else tensor.long()


def _array(part: Any) -> np.ndarray[Any, Any]:
    """As one array; columns of numbers and flags side by side, and those of pandas that may have gaps, become numbers."""
    array = np.asarray(part)
    if array.dtype.kind in "fiu":  # in this machine's byte order, of a width that torch has
        array = array.astype(f"{array.dtype.kind}{min(8, array.dtype.itemsize)}", copy=False)
    if array.dtype == object and hasattr(part, "to_numpy"):
        kinds = {
            t.kind
            for t in np.atleast_1d(np.asarray(part.dtypes if hasattr(part, "dtypes") else part.dtype, dtype=object))
        }
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
    if empty := [i for i, t in enumerate(tensors) if not t.numel()]:
        shape = tuple(tensors[empty[0]].shape)
        raise DataError(f"array {empty[0]} of the {role} data has the shape {shape}: there is nothing in its rows")
    for i, t in enumerate(tensors):
        if t.is_floating_point() and not bool(torch.isfinite(t).all()):
            bad = (~torch.isfinite(t.reshape(len(t), -1))).any(1).nonzero()[0].item()
            raise DataError(
                f"array {i} of the {role} data holds NaN, infinity or a number too large for {t.dtype}, first in row {bad}; "
                "impute or drop such rows (the command line imputes missing values)"
            )
