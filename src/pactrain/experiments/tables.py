"""A table of test accuracies: every cell is a method with its settings, run for some seeds.

A cell's settings are those of the whole table, of its row and of its column put together; `method` says how it is trained:

    pac_bayes  `experiments.images.pac_bayes` with the settings
    plain      `experiments.images.plain` with the settings; `search` lists values to choose from on held-out images

`score` names the metric that is shown, by default the test accuracy of the mean network.
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pactrain.baselines.grid_search import combinations, refit_length
from pactrain.experiments import images
from pactrain.experiments.default_rules import with_rules
from pactrain.experiments.paper import Matrix
from pactrain.experiments.plan import Run
from pactrain.experiments.store import Row
from pactrain.experiments.table_cells import CarryOut, Choose, carried, chosen_settings
from pactrain.runtime.errors import PactrainError

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows and columns with their settings, what all cells share, and the paper's numbers where they mean the same."""

    title: str
    rows: Mapping[str, Settings]
    columns: Mapping[str, Settings]
    common: Settings
    methods: Mapping[str, Settings] = field(default_factory=dict)  # what all cells of a method share
    paper: Matrix = field(default_factory=dict)
    spread: bool = False  # the columns are settings of one method: how far apart its scores are is the point
    without: frozenset[tuple[str, str]] = frozenset()  # cells that would mean nothing
    notes: tuple[str, ...] = ()
    whole: int | None = None  # where rows have different numbers of epochs: what these are parts of
    overrides: Settings = field(default_factory=dict)

    def cells(self) -> dict[tuple[str, str], "Cell"]:
        """All cells by row and column."""
        return {
            (row, column): self._cell(dict(self.rows[row]) | dict(self.columns[column]))
            for row, column in itertools.product(self.rows, self.columns)
            if (row, column) not in self.without
        }

    def only(self, rows: Sequence[str], columns: Sequence[str]) -> "Table":
        """A copy with these rows and columns only; none named means all."""
        for names, there in ((rows, self.rows), (columns, self.columns)):
            for name in names:
                if name not in there:
                    raise PactrainError(f"there is no {name!r} in this table; there are {', '.join(map(repr, there))}")
        return replace(
            self,
            rows={name: v for name, v in self.rows.items() if name in (rows or self.rows)},
            columns={name: v for name, v in self.columns.items() if name in (columns or self.columns)},
        )

    def changed(self, overrides: Settings) -> "Table":
        """A copy with other settings for all cells, whatever their rows and columns say."""
        return replace(self, overrides={**self.overrides, **overrides})

    def _cell(self, own: dict[str, Any]) -> "Cell":
        shared = {**self.common, **self.methods.get(own.get("method", "pac_bayes"), {})}
        merged = {**shared, **own}
        if "rules" in merged:
            merged["rules"] = {**shared.get("rules", {}), **own.get("rules", {})}
        merged |= self._epochs(merged)
        merged |= {k: v for k, v in self.overrides.items() if k in merged and k != "epochs"}
        method, score = merged.pop("method", "pac_bayes"), merged.pop("score", "test")
        merged["network"] = _named(merged["network"], merged.pop("width", 1.0))
        choices = merged.pop("search", {})
        return Cell(method, score, merged, tuple(combinations(choices)) if choices else ())

    def _epochs(self, merged: Settings) -> Settings:
        """Whole numbers of epochs, as large parts of `overrides["epochs"]` as they are of the table's own."""
        own, new = merged.get("epochs"), self.overrides.get("epochs")
        if own is None:  # as many as the rules say
            return {"epochs": new} if "epochs" in merged else {}
        share = 1.0 if new is None else new / (self.whole or own)
        second = {"stage2": round(merged["stage2"] * share)} if "stage2" in merged else {}
        return {"epochs": max(1, round(own * share)), **second}


def _named(network: str, width: float) -> str:
    options = ["" if width == 1 else f"width={width:g}", network.partition(":")[2]]
    return ":".join(filter(None, [network.partition(":")[0], ",".join(filter(None, options))]))


@dataclass(frozen=True)
class Cell:
    """How one cell is trained; `tried` are the settings of its search, if it has one."""

    method: str
    score: str
    settings: Settings
    tried: tuple[Settings, ...] = ()

    def runs(self, seed: int, choose: Choose) -> list[Run]:
        """The runs of a seed: one, or one for each setting that is tried."""
        if not self.tried:
            return [self.run(seed, {})]
        held_out = {"held_out": True} if choose == "validation" else {}
        return [self.run(seed, {**setting, **held_out}) for setting in self.tried]

    def again(self, seed: int, number: int, row: Row) -> Run:
        """Training with the chosen setting on all images, for as long as was best."""
        assert row.metrics is not None
        return self.run(seed, {**self.tried[number], "stop_at": refit_length(row.metrics["best_step"])})

    def run(self, seed: int, more: Settings) -> Run:
        """A run with some more settings."""
        settings = {**self.settings, **more}
        kind = f"{settings['network']} {settings.get('optimizer') or settings.get('bound', 'layer')}"
        data = images.digest_of(settings["data"])
        if self.method == "pac_bayes" and settings.get("preset", "auto") == "auto":
            data = with_rules(data)
        return Run(f"{images.__name__}:{self.method}", settings, seed, data, kind=kind)


@dataclass(frozen=True)
class Score:
    """A cell's scores in percent, one per seed; the settings that a search chose; the number of trainings and their time."""

    scores: tuple[float, ...]
    trainings: int
    cpu_seconds: float
    chosen: tuple[Settings, ...] = ()
    failed: int = 0
    paper: float | None = None

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds; NaN for one."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "mean": self.mean, "deviation": self.deviation}


Scores = dict[tuple[str, str], Score]


def carry_out_table(table: Table, carry_out: CarryOut, *, seeds: int, choose: Choose = "validation") -> Scores:
    """Run all cells, one seed of all of them after the other; what several cells share is run once."""
    cells = table.cells()
    plan = [run for seed in range(seeds) for cell in cells.values() for run in cell.runs(seed, choose)]
    rows = carried(plan, carry_out)
    found = {
        place: [[rows[run.identity] for run in cell.runs(seed, choose)] for seed in range(seeds)]
        for place, cell in cells.items()
    }
    picked = {place: chosen_settings(found[place], choose) for place, cell in cells.items() if cell.tried}
    more = {
        place: [cells[place].again(seed, k, found[place][seed][k]) for seed, k in enumerate(numbers)]
        for place, numbers in picked.items()
        if choose == "validation" and _usable(found[place], numbers)
    }
    rows |= carried([run for runs in more.values() for run in runs], carry_out)
    return {
        place: _score(
            cell,
            found[place],
            picked.get(place, [0] * seeds),
            [rows[run.identity] for run in more.get(place, [])],
            table.paper.get(place),
        )
        for place, cell in cells.items()
    }


def metrics_of(table: Table, carry_out: CarryOut, *, seeds: int) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The metrics of every cell, one per seed, of a table without searches."""
    cells = table.cells()
    rows = carried([cell.run(seed, {}) for seed in range(seeds) for cell in cells.values()], carry_out)
    found = {place: [rows[cell.run(seed, {}).identity] for seed in range(seeds)] for place, cell in cells.items()}
    for row in itertools.chain.from_iterable(found.values()):
        _must_have_run(row)
    return {place: [row.metrics for row in of if row.metrics is not None] for place, of in found.items()}


def _must_have_run(row: Row) -> None:
    if row.metrics is None:
        raise PactrainError(f"a run of {row.kind} failed; the next call tries it again:\n{row.error}")


def _usable(found: Sequence[Sequence[Row]], numbers: Sequence[int]) -> bool:
    return all(rows[k].metrics is not None for rows, k in zip(found, numbers, strict=True))


def _score(
    cell: Cell, found: Sequence[Sequence[Row]], numbers: Sequence[int], again: Sequence[Row], paper: float | None
) -> Score:
    results = list(again) or [rows[k] for rows, k in zip(found, numbers, strict=True)]
    everything = [*itertools.chain.from_iterable(found), *again]
    for row in results:
        _must_have_run(row)
    return Score(
        tuple(100 * row.metrics[cell.score] for row in results if row.metrics is not None),
        len(everything),
        sum(row.metrics["cpu_seconds"] for row in everything if row.metrics is not None),
        tuple(cell.tried[k] for k in numbers) if cell.tried else (),
        sum(row.metrics is None for row in everything),
        paper,
    )
