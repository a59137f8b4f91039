"""Rows that are read from disk batch by batch: time against the budget, and memory against the size of the data.

    python benchmarks/larger_than_memory.py [--rows 10000000] [--budget 60] [--folder DIR]

A file of 20 numbers per row is written to a memory-mapped array (800 MB for ten million rows) and trained on through a DataLoader.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

import pactrain
from pactrain.models.mlp import mlp

COLUMNS, BATCH = 20, 4096


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """Rows of an array on disk, a batch at a time; the class is the sign of the first column."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: list[int]) -> tuple[Tensor, Tensor]:
        x = torch.from_numpy(self.array[np.sort(index)])
        return x, (x[:, 0] > 0).long()


def written(path: Path, rows: int) -> np.ndarray:
    """The array, written in pieces."""
    g, array = np.random.default_rng(0), np.memmap(path, np.float32, "w+", shape=(rows, COLUMNS))
    for start in range(0, rows, 1 << 18):
        array[start : start + (1 << 18)] = g.standard_normal((min(1 << 18, rows - start), COLUMNS), dtype=np.float32)
    array.flush()
    return np.memmap(path, np.float32, "r", shape=(rows, COLUMNS))


def peak() -> float:
    """Largest memory of the process so far in MB, without pages of files."""
    status = Path("/proc/self/status").read_text()
    anonymous = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return max(int(anonymous.split()[1]) / 1024, 0.0) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        data = Rows(written(Path(folder) / "rows", options.rows))
        loader = DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), BATCH, drop_last=False))
        torch.manual_seed(0)
        before, began, seen = peak(), time.monotonic(), []
        result = pactrain.fit(
            mlp(COLUMNS, 2), loader, budget=options.budget, callbacks=[lambda event: seen.append(peak())]
        )
        seconds = time.monotonic() - began
    print(f"{options.rows:,} rows, {options.rows * COLUMNS * 4 / 2**20:,.0f} MB on disk")
    print(f"budget {options.budget:g} s, took {seconds:.1f} s")
    print(f"memory {before:.0f} MB before, at most {max(seen):.0f} MB in training and certificate")
    print(f"accuracy {result.metrics['train']['accuracy']:.4f}, {result.metrics['steps']:,} steps")
    print(*result.notes, str(result.certificate), sep="\n")


if __name__ == "__main__":
    main()
