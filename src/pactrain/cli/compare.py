"""`pactrain compare`: PAC-Bayes with its defaults against plain training with a grid search, on the user's own data."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pactrain.cli.check import check_data
from pactrain.cli.groups import JsonOptions, TableOptions
from pactrain.cli.option_types import Address, Count, File
from pactrain.cli.output import console, say, table, write_result
from pactrain.runtime.network_names import check_model
from pactrain.runtime.progress import Bar

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain.experiments.compare import Comparison, Method, Problem, Spread


@dataclass(kw_only=True)
class NetworkOptions:
    """The network that all methods train."""

    heading: ClassVar = "model"
    model: str = "mlp"
    """mlp, mlp:600-600-600 (widths), linear, a network for images (docs/images.md), or FILE.py:FUNCTION, a function of (inputs, outputs) that returns a torch module."""


@dataclass(kw_only=True)
class RepeatOptions:
    """How often, and where."""

    heading: ClassVar = "training"
    seeds: int = 3
    """Number of repetitions, each with a split, initial weights and a search of its own."""
    backend: Literal["loky", "ray", "dask"] = "loky"
    """Where the trainings run: processes of this machine, or a Ray or Dask cluster."""
    address: Address = None
    """The Ray or Dask cluster to use; without it one is started here."""
    workers: Count = None
    """Trainings at a time, one thread each; by default one for each core."""


@dataclass(kw_only=True)
class StoreOptions:
    """Where results go."""

    heading: ClassVar = "output"
    store: File = None
    """SQLite file that keeps the results; a comparison that was stopped goes on from it.  By default below runs/."""


@dataclass
class Compare(TableOptions, NetworkOptions, RepeatOptions, StoreOptions, JsonOptions):
    """Compare PAC-Bayes training with SGD, Adam and AdamW, whose settings a grid search chooses on a fifth of the training rows."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        check_data(self.data)
        check_model(self.model)
        say(screen, f"Reading {self.data} …")
        from pactrain.experiments.compare import compare

        store = self.store or Path("runs") / f"compare-{_stem(self.data)}.sqlite"
        started = time.monotonic()
        with Bar(screen) as bar:
            found = compare(
                self.problem(),
                store,
                seeds=self.seeds,
                backend=self.backend,
                workers=self.workers,
                address=self.address,
                progress=bar,
            )
        seconds = time.monotonic() - started
        show(screen, found, f"{self.data}, model {self.model}")
        screen.print(f"{seconds:.0f} s; the results are kept in {store}", markup=False)
        values: dict[str, Any] = {"data": self.data, "model": self.model, "store": str(store), "seconds": seconds}
        write_result(self.json_to, values | found.to_dict())
        return 0

    def problem(self) -> "Problem":
        """Data and network, with files named so that workers in other folders find them."""
        from pactrain.data.load import is_file_name
        from pactrain.experiments.compare import Problem

        path, _, function = self.model.rpartition(":")
        return Problem(
            data=str(Path(self.data).resolve()) if is_file_name(self.data) else self.data,
            model=f"{Path(path).resolve()}:{function}" if path.endswith(".py") else self.model,
            target=self.target,
            task=self.task,
            drop=self.drop,
            test_fraction=self.test_fraction,
            root=str(self.data_root.resolve()) if self.data_root else None,
        )


def _stem(data: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(data).stem if Path(data).suffix else data) or "data"


def show(screen: "Console", found: "Comparison", what: str) -> None:
    """The table, and what its columns mean."""
    share = found.score == "accuracy"
    name = "test accuracy, %" if share else "test rmse"
    rows = [_row(method, 100.0 if share else 1.0) for method in found.methods]
    columns = ["method", name, "PAC-Bayes − it", "trainings", "seconds", "chosen, seed by seed"]
    drawn = table(what, columns, rows)
    drawn.columns[-1].justify = "left"
    screen.print(drawn)
    seeds = f"Means over {len(found.seeds)} seeds with 95 % intervals" if len(found.seeds) > 1 else "One seed"
    better = "higher" if share else "lower"
    screen.print(
        f"{seeds}; {better} is better; differences are paired. Trainings and seconds (of one core) are those of one seed.",
        markup=False,
    )


def _row(method: "Method", unit: float) -> list[str]:
    difference = _spread(method.difference, unit, sign="+") if method.difference else ""
    chosen = "\n".join(_settings(settings) for settings in method.chosen) or "defaults, all rows"
    score = _spread(method.score, unit)
    return [method.name, score, difference, str(method.trainings), f"{method.seconds:.0f}", chosen]


def _spread(spread: "Spread", unit: float, sign: str = "") -> str:
    half = f" ± {unit * spread.half_width:.2f}" if spread.half_width is not None else ""
    return f"{unit * spread.mean:{sign}.2f}{half}"


def _settings(settings: dict[str, Any]) -> str:
    words = {"lr": "lr", "weight_decay": "decay", "noise": "noise", "dropout": "dropout"}
    return ", ".join(f"{word} {settings[key]:g}" for key, word in words.items() if settings[key]) + (
        f", {settings['steps']} steps"
    )
