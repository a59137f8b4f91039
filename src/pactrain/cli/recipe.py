"""Options that recipes of `pactrain reproduce` share: where runs are carried out and results kept, sizes of recipes on images."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from pactrain.cli.option_types import Address, Count, Folder, JsonFile
from pactrain.cli.output import console, write_result
from pactrain.runtime.progress import Bar

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain.experiments.table_cells import CarryOut

QUIET = ("store", "backend", "address", "workers", "data_root", "json_to", "out", "name")
"""Options that do not shape a result."""


@dataclass
class Recipe:
    """Options of every recipe."""

    store: Path = Path("reproduce.sqlite")
    """Where results are kept; started again, a recipe goes on where it stopped."""
    backend: Literal["loky", "ray", "dask"] = "loky"
    """Processes of this machine, or a cluster."""
    address: Address = None
    """Where the cluster is."""
    workers: Count = None
    """Runs at once; by default one for each core."""
    data_root: Folder = None
    """Folder with data files; then $PACTRAIN_DATA and the user's cache are looked at."""
    json_to: JsonFile = None
    """Write the result as JSON to this file, or to standard output for '-'."""

    def runner(self, bar: Bar) -> "CarryOut":
        """What carries out a plan."""
        from pactrain.experiments import Run, carry_out
        from pactrain.experiments.store import Row
        from pactrain.experiments.torchrun import by_torchrun, carry_out_shared

        if self.data_root is not None:
            os.environ["PACTRAIN_DATA"] = str(self.data_root)  # workers find it there

        def run(plan: Sequence[Run]) -> list[Row]:
            if by_torchrun():
                return carry_out_shared(plan, self.store, progress=bar)
            return carry_out(
                plan, self.store, backend=self.backend, workers=self.workers, address=self.address, progress=bar
            )

        return run

    def options(self) -> dict[str, Any]:
        """The options that shaped a result."""
        return {k: v for k, v in vars(self).items() if k not in QUIET}


@dataclass
class ImageRecipe(Recipe, ABC):
    """Options of every recipe on images."""

    name: tyro.conf.Suppress[str] = ""
    scale: Literal["cpu", "paper"] = "cpu"
    """cpu: a part of CIFAR-10 and narrow networks, for two cores.  paper: its sizes, for GPUs; torchrun shares out the trainings."""
    seeds: int = 3
    """Seeds: training images, initial weights and batches of their own."""
    images: Count = None
    """Training images, if not those of the scale."""
    epochs: Count = None
    """Epochs, if not those of the scale."""

    def run(self) -> int:
        """Carry it out."""
        from pactrain.experiments.torchrun import is_first

        screen = console(self.json_to, quiet=not is_first())
        with Bar(screen) as bar:
            values = self.result(screen, self.runner(bar))
        write_result(self.json_to if is_first() else None, {"options": self.options(), **values})
        return 0

    @abstractmethod
    def result(self, screen: "Console", carry_out: "CarryOut") -> dict[str, Any]:
        """Run it, show it, and return it."""

    def changes(self) -> dict[str, Any]:
        """Settings that the options change in all cells."""
        return {k: v for k in ("images", "epochs") if (v := getattr(self, k)) is not None}
