"""Cells of a table that compares PAC-Bayes with searched plain training on the same splits: scores, difference, time."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from pactrain.baselines.grid_search import best_trial, refit_length
from pactrain.baselines.plain_training import Trained
from pactrain.experiments.compare import spread
from pactrain.experiments.paper import Number
from pactrain.experiments.plan import Run
from pactrain.experiments.store import Row
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read_data import as_batches
from pactrain.problem.scores import evaluate
from pactrain.runtime.errors import PactrainError

Choose = Literal["validation", "test"]
CarryOut = Callable[[Sequence[Run]], list[Row]]


@dataclass(frozen=True)
class Side:
    """One method: the test accuracy of every split in percent, the number of trainings, and their time."""

    scores: tuple[float, ...]
    trainings: int
    seconds: float
    cpu_seconds: float

    @property
    def number(self) -> Number:
        """Mean and standard deviation over splits."""
        return statistics.fmean(self.scores), statistics.stdev(self.scores) if len(self.scores) > 1 else math.nan


@dataclass(frozen=True)
class CellResult:
    """One cell of a table."""

    names: tuple[str, ...]
    pac_bayes: Side
    erm: Side
    chosen: tuple[dict[str, Any], ...]  # the settings of plain training that each split chose
    every: tuple[float, ...]  # mean test accuracy of every setting that was searched
    failed: int
    paper: tuple[Number, Number] | None  # its baseline, its method

    def difference(self) -> tuple[float, float]:
        """Mean of PAC-Bayes less plain training over splits, and half its 95 % interval."""
        return paired(self.pac_bayes.scores, self.erm.scores)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sides = {"pac_bayes": self.pac_bayes, "erm": self.erm}
        mean, half = self.difference()
        return {
            "names": list(self.names),
            **{k: vars(s) | {"mean": s.number[0], "deviation": s.number[1]} for k, s in sides.items()},
            "difference": mean,
            "half_interval": half,
            "chosen": list(self.chosen),
            "every_setting": list(self.every),
            "failed": self.failed,
            "paper": self.paper,
        }


def paired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Mean of the differences, and half the width of its 95 % interval (Student's t; NaN for a single pair)."""
    found = spread([a - b for a, b in zip(ours, theirs, strict=True)])
    return found.mean, math.nan if found.half_width is None else found.half_width


@dataclass(frozen=True)
class Cell:
    """What one cell of a table needs.

    pac_bayes: a run for every split.
    trials:    for every split a run for every setting, in one order; their metrics hold `validation`, `validation_loss`, `test`.
    refit:     the setting that says how long a winner is trained again on everything; None where the trial is the result.
    """

    names: tuple[str, ...]
    pac_bayes: tuple[Run, ...]
    trials: tuple[tuple[Run, ...], ...]
    refit: str | None
    paper: tuple[Number, Number] | None = None

    def again(self, trial: Run, row: Row) -> Run | None:
        """The run that trains again with the settings of a trial, for as long as was best; None where there is none."""
        if self.refit is None or row.metrics is None:
            return None
        return replace(trial, settings=dict(trial.settings) | {self.refit: refit_length(row.metrics["best_step"])})


class Clock:
    """Seconds, on the wall and of the processor, since it was made."""

    def __init__(self) -> None:
        self._started, self._cpu = time.perf_counter(), time.process_time()

    def spent(self) -> dict[str, float]:
        """As metrics."""
        return {"seconds": time.perf_counter() - self._started, "cpu_seconds": time.process_time() - self._cpu}


def scored(network: nn.Module, data: Any, spent: Mapping[str, float]) -> dict[str, Any]:
    """The network's accuracy on test data of any kind that `fit` takes, beside the time that was spent before."""
    test = as_batches(data, batch_size=None, device=torch.device("cpu"), role="test")
    return {"test": evaluate(network, test.ordered(), LOSSES["cross_entropy"])["accuracy"], **spent}


def validation_metrics(trained: Trained) -> dict[str, Any]:
    """What a search needs to know of a trial, as metrics; nothing of a training without validation data."""
    if trained.validation is None:
        return {}
    accuracy, loss = trained.validation["accuracy"], trained.validation["loss"]
    return {"validation": accuracy, "validation_loss": loss, "best_step": trained.best_step}


def compare(
    cells: Sequence[Cell], carry_out: CarryOut, *, choose: Choose = "validation", every: bool = False
) -> list[CellResult]:
    """Carry out all cells, one split of all of them after the other, and compare.

    choose: "validation", for every split its own; "test" is the paper's protocol: the setting with the best mean test score.
    every:  train again with every setting, not only the chosen ones.
    """
    splits = range(max(len(cell.pac_bayes) for cell in cells))
    first = [run for s in splits for cell in cells for run in (cell.pac_bayes[s], *cell.trials[s])]
    rows = carried(first, carry_out)
    found = [[[rows[run.identity] for run in runs] for runs in cell.trials] for cell in cells]
    chosen = [chosen_settings(trials, choose) for trials in found]
    wanted = [_again(cell, rows, None if every else picked) for cell, picked in zip(cells, chosen, strict=True)]
    rows |= carried([run for runs in wanted for run in runs], carry_out)
    return [_result(cell, rows, picked, again) for cell, picked, again in zip(cells, chosen, wanted, strict=True)]


def carried(plan: Sequence[Run], carry_out: CarryOut) -> dict[str, Row]:
    """Carry out a plan, what stands in it several times once; the rows by identity."""
    unique = list({run.identity: run for run in plan}.values())
    return {row.identity: row for row in carry_out(unique)} if unique else {}


def chosen_settings(found: Sequence[Sequence[Row]], choose: Choose) -> list[int]:
    """The number of the setting that each seed takes, from the rows of every seed and setting."""
    return _by_validation(found) if choose == "validation" else _by_test(found)


def _again(cell: Cell, rows: Mapping[str, Row], picked: list[int] | None) -> list[Run]:
    """Runs that train again, with the chosen settings or with all."""
    trials = [
        run
        for s, runs in enumerate(cell.trials)
        for run in (runs if picked is None else runs[picked[s] : picked[s] + 1])
    ]
    return [run for trial in trials if (run := cell.again(trial, rows[trial.identity])) is not None]


def _result(cell: Cell, rows: Mapping[str, Row], picked: list[int], more: list[Run]) -> CellResult:
    def result(run: Run) -> Row:
        after = cell.again(run, rows[run.identity])
        return rows[run.identity] if after is None else rows[after.identity]

    ours = [rows[run.identity] for run in cell.pac_bayes]
    winners = [runs[k] for runs, k in zip(cell.trials, picked, strict=True)]
    results = [result(run) for run in winners]
    failed = [row for row in (*ours, *results) if row.metrics is None]
    if failed:
        raise PactrainError(f"{' '.join(cell.names)}: a run failed; the next call tries it again:\n{failed[0].error}")
    searched = [rows[run.identity] for runs in cell.trials for run in runs]
    everything = more and len(more) > len(winners)
    shown = [[result(run) if everything else rows[run.identity] for run in runs] for runs in cell.trials]
    return CellResult(
        cell.names,
        _side(ours, ours),
        _side(results, searched + ([] if results[0] in searched else results)),
        tuple(dict(run.settings) for run in winners),
        tuple(_means(shown)),
        sum(row.metrics is None for row in searched),
        cell.paper,
    )


def _side(results: Sequence[Row], everything: Sequence[Row]) -> Side:
    good = [row.metrics for row in everything if row.metrics is not None]
    return Side(
        tuple(100 * row.metrics["test"] for row in results if row.metrics is not None),
        len(everything),
        sum(m["seconds"] for m in good),
        sum(m["cpu_seconds"] for m in good),
    )


def _by_validation(found: Sequence[Sequence[Row]]) -> list[int]:
    def scores(metrics: Mapping[str, Any] | None) -> dict[str, float] | None:
        return None if metrics is None else {"accuracy": metrics["validation"], "loss": metrics["validation_loss"]}

    return [best_trial([scores(row.metrics) for row in rows]) or 0 for rows in found]


def _by_test(found: Sequence[Sequence[Row]]) -> list[int]:
    means = _means(found)
    best = max(range(len(means)), key=lambda k: -math.inf if math.isnan(means[k]) else means[k])
    return [best] * len(found)


def _means(found: Sequence[Sequence[Row]]) -> list[float]:
    """Mean test accuracy in percent of every setting over the splits; NaN if it failed in one of them."""
    out = []
    for rows in zip(*found, strict=True):
        metrics = [row.metrics for row in rows]
        scores = [m["test"] for m in metrics if m is not None]
        out.append(100 * statistics.fmean(scores) if len(scores) == len(metrics) else math.nan)
    return out
