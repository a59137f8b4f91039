"""A small CIFAR, and runs carried out in the test's own process."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pactrain.experiments import Run, Store
from pactrain.experiments.plan import execute
from pactrain.experiments.store import Row


def write_cifar(root: Path) -> None:
    """Images whose colour tells their class, in the published binary layout."""
    chance = np.random.default_rng(0)
    folder = root / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        labels = chance.integers(0, 10, 40).astype(np.uint8)
        shades = 20 * labels[:, None, None] + chance.integers(0, 40, (40, 3, 1024))
        records = np.concatenate([labels[:, None], shades.astype(np.uint8).reshape(40, -1)], axis=1)
        (folder / name).write_bytes(records.tobytes())


class Here:
    """Carries out runs in this process, keeping what the store has."""

    def __init__(self, path: Path) -> None:
        self.store, self.done = Store(path / "results.sqlite"), list[Run]()

    def __call__(self, runs: Sequence[Run]) -> list[Row]:
        for run in runs:
            if self.store.get(run) is None:
                self.store.write(run, execute(run.task))
                self.done.append(run)
        rows = self.store.of(runs)
        return [rows[run.identity] for run in runs]
