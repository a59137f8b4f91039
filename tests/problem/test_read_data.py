"""Every kind of data becomes the same rows, and what cannot be read is refused with the way out."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch.utils.data import DataLoader, TensorDataset

from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.read_data import as_batches, check_columns
from pactrain.runtime.errors import DataError

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 1, 0])
PAIR = torch.from_numpy(X).float(), torch.from_numpy(Y)


def read(data: Any) -> Batches:
    return as_batches(data, batch_size=4, device=torch.device("cpu"))


@pytest.mark.parametrize(
    "data",
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (pd.DataFrame(X), pd.Series(Y)),
        (X, Y.astype(bool)),
        TensorDataset(*PAIR),
        DataLoader(TensorDataset(*PAIR), batch_size=3),
        [PAIR],
        TensorBatches(PAIR, 4),
    ],
    ids=["arrays", "lists", "frame", "flags", "TensorDataset", "DataLoader", "batches", "Batches"],
)
def test_all_kinds_hold_the_same_rows(data: Any) -> None:
    x, y = (torch.cat(parts) for parts in zip(*read(data).ordered(), strict=True))
    assert torch.equal(x, PAIR[0])
    assert torch.equal(y, PAIR[1])
    assert x.dtype == torch.float32
    assert y.dtype == torch.int64


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((sparse.csr_array(X), Y), "sparse matrix; pass its toarray"),
        (({"x": X}, Y), "a pair of named inputs and a target"),
        (iter([PAIR]), "can be read only once"),
        ({"x": X, "y": Y}, r"one dict; pass a pair \(X, y\)"),
        (X, r"one ndarray; pass a pair \(X, y\)"),
        (7, "data of type int cannot be read"),
        ((X[:5], Y), r"different numbers of rows: \[5, 6\]"),
        ((X[:0], Y[:0]), "has no rows"),
        ((np.where(X == 3, np.nan, X), Y), "a number too large for torch.float32, first in row 1"),
    ],
)
def test_other_data_is_refused_with_the_way_out(data: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read(data)


def test_two_tables_have_the_same_columns() -> None:
    check_columns(read((X, Y)), read((X[:2], Y[:2])))
    with pytest.raises(DataError, match="2 features and the calibration rows 1"):
        check_columns(read((X, Y)), read((X[:, :1], Y)), "calibration")
