"""Data that is never in memory as a whole: a data set that makes its rows, and arrays on disk."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import pactrain
from pactrain.problem.batches import LoaderBatches
from pactrain.training.time_left import FEWEST_ROWS

ROWS = 20_000


class Made(Dataset[tuple[Tensor, Tensor]]):
    """Rows that are made when they are asked for; how often is counted."""

    def __init__(self, rows: int) -> None:
        self.rows, self.asked = rows, 0

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.asked += 1
        x = torch.randn(4, generator=torch.Generator().manual_seed(index))
        return x, (x[0] > 0).long()


def test_a_sample_of_a_loader_reads_no_more_than_itself() -> None:
    data = Made(ROWS)
    loader = LoaderBatches(DataLoader(data, batch_size=100, shuffle=True), torch.device("cpu"))
    some = loader.sample(300, seed=0)
    first, second = (torch.cat([x for x, _ in some.ordered()]) for _ in range(2))
    assert data.asked == 600
    assert torch.equal(first, second)  # the same rows each time
    assert len(first.unique(dim=0)) == 300
    assert not torch.equal(first, torch.cat([x for x, _ in loader.sample(300, seed=1).ordered()]))


def test_a_short_budget_measures_some_rows_of_a_loader() -> None:
    data = Made(ROWS)
    result = pactrain.fit(nn.Linear(4, 2), DataLoader(data, batch_size=500, shuffle=True), budget=0.5)
    measured = result.metrics["train"]["measured"]
    assert FEWEST_ROWS <= measured < result.metrics["train"]["n"] == result.certificate.n == ROWS
    assert result.certificate.measured["rows"] == measured
    assert not result.certificate.problems()


def test_arrays_on_disk(tmp_path: Path) -> None:
    g = np.random.default_rng(0)
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(2000, 4))
    x[:] = g.normal(size=x.shape)
    y = (np.asarray(x[:, 0]) > 0).astype(np.int64)
    read = np.memmap(tmp_path / "x", np.float32, "r", shape=x.shape)
    result = pactrain.fit(nn.Linear(4, 2), (read, y), budget="20 epochs")
    assert result.metrics["train"]["accuracy"] > 0.9
    assert np.array_equal(read, x)
