"""Runs carried out in the test's own process."""

from collections.abc import Sequence
from pathlib import Path

from pactrain.experiments import Run, Store
from pactrain.experiments.plan import execute
from pactrain.experiments.store import Row


class Here:
    """Carries out runs in this process, keeping what the store has."""

    def __init__(self, path: Path) -> None:
        self.store, self.done = Store(path / "results.sqlite"), list[Run]()

    def __call__(self, runs: Sequence[Run]) -> list[Row]:
        for run in runs:
            if self.store.get(run) is None:
                self.store.write(run, execute(run.config))
                self.done.append(run)
        rows = self.store.of(runs)
        return [rows[run.identity] for run in runs]
