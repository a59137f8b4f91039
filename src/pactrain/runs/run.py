"""`Run`: one run of `fit`, from opening its folder to writing its results."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from pactrain.certification.after_training import Certified
from pactrain.certification.data_checks import shared_rows
from pactrain.problem.batches import Batches
from pactrain.problem.read import Problem, read_held_out
from pactrain.problem.read_data import check_columns
from pactrain.runs.analysis import Labels, analyse
from pactrain.runs.configuration import configuration
from pactrain.runs.conformal import Calibration, calibrated
from pactrain.runs.folder import RunFolder
from pactrain.runs.notes import notes_on
from pactrain.runs.prediction import Preprocess
from pactrain.runs.result import Result
from pactrain.runs.scores import judge, metrics_of
from pactrain.runtime import distributed
from pactrain.runtime.events import Callback, Event, silent
from pactrain.training.options import Options
from pactrain.training.start import Start
from pactrain.training.train import Keeper, NotKept


@dataclass(frozen=True)
class Run:
    """A run that is under way.

    Attributes:
        config: Everything that determines it.
        folder: Where it is kept; None without a folder, and in all processes of a job but the first.
        notify: Hears of progress.
    """

    config: dict[str, Any]
    folder: RunFolder | None
    notify: Callback = silent

    @classmethod
    def open(cls, start: Start, extra: Mapping[str, Any]) -> "Run":
        """Begin a run, or go on with the one in its folder.

        Args:
            start: Where training starts.
            extra: Anything that the caller wants to be kept with the configuration.

        Raises:
            RunError: The folder holds something else.
        """
        config, options = configuration(start, extra), start.options
        if options.out is None or distributed.rank():
            return cls(config, None, options.notify)
        folder = options.until_end.enter_context(RunFolder.open(options.out, config, resume=options.resume))
        return cls(config, folder, options.notify)

    @property
    def keeper(self) -> Keeper:
        """What keeps the run while it goes on."""
        return NotKept() if self.folder is None else self.folder

    def finish(
        self,
        certified: Certified,
        draw: Callable[[Result], str],
        *,
        calibration: Batches | None = None,
        preprocess: Preprocess | None = None,
        labels: Labels | None = None,
    ) -> Result:
        """Sum up a certified training with its scores, notes and metrics, and write all of it to the folder, if there is one.

        Args:
            certified: The training and what was proved.
            draw: Makes the page about a result.
            calibration: Rows for intervals and sets; by default the test rows.
            preprocess: How raw rows are prepared.
            labels: What is shown of a judged row beside its features.

        Returns:
            The result, with a note if the report could not be made.
        """
        trained, start = certified.trained, certified.trained.start
        model, given, options = start.posterior.model, start.scaled.given, start.options
        self.notify(Event("report", 0, 1))
        n, rows = start.untrained.n, certified.facts["rows"]
        if rows is not None:
            given = given.some(rows[0], options.seed)
        judgement = judge(model, given)
        if rows is not None:
            judgement.metrics["train"] |= {"n": n, "measured": judgement.metrics["train"]["n"]}
        weights, encoding = start.posterior.num_weights, self.config.get("preprocess", {})
        notes = notes_on(trained, judgement.metrics, encoded=bool(encoding)) + options.given_up
        analysis = analyse(
            model, given, judgement.answers, encoding=encoding, weights=weights, seed=options.seed,
            labels=labels if rows is None else None,
        )  # fmt: skip
        before = self.folder.seconds_before if self.folder is not None else 0.0
        result = Result(
            model,
            start.posterior,
            certified.certificate,
            trained.history,
            metrics_of(certified, judgement, before + time.monotonic() - options.started),
            trained.trainer.plan.moment,
            self.config,
            notes,
            trained.interrupted,
            path=self.folder.path if self.folder is not None else None,
            earlier=certified.earlier,
            calibration=_calibration(certified, calibration),
            preprocess=preprocess,
            analysis=analysis,
            draw=draw,
        )
        if self.folder is not None:
            self._write(result, self.folder)
        self.notify(Event("report", 1, 1))
        return result

    def _write(self, result: Result, folder: RunFolder) -> None:
        """Write what the run ends with; `metrics.json` last, as the sign that it is complete."""
        folder.finish(result.model, result.posterior, result.earlier, result.certificate)
        if result.calibration is not None:
            folder.keep_calibration(result.calibration)
        folder.write("analysis.json", result.analysis)
        try:
            result.report()
        except Exception as error:  # a picture must not cost a run
            result.notes.append(f"The report could not be made ({error!r}); pactrain report {folder.path} tries again.")
        metrics = result.metrics | {"notes": result.notes, "interrupted": result.interrupted}
        folder.complete(metrics, interrupted=result.interrupted)


def read_calibration(model: nn.Module, rows: Any, problem: Problem, options: Options) -> Batches | None:
    """The caller's rows for intervals and sets, read before training so that no mistake in them costs it."""
    if rows is None:
        return None
    batches = read_held_out(model, rows, problem.loss.plain, options.reading(None), "calibration")
    check_columns(problem.batches, batches, "calibration")
    return batches


def _calibration(certified: Certified, rows: Batches | None) -> Calibration | None:
    """Scores of held-out rows: those that the caller gave for it, or the test rows."""
    start = certified.trained.start
    model, given = start.posterior.model, start.scaled.given
    if rows is not None:
        return calibrated(model, rows, given.loss.plain, source="calibration rows", doubts=_seen(given, rows))
    if given.test is None:
        return None
    doubts = (*certified.facts["test_doubts"], *_seen(given, given.test))
    return calibrated(model, given.test, given.loss, source="test rows", doubts=doubts)


def _seen(given: Problem, rows: Batches) -> tuple[str, ...]:
    """A doubt if some of the rows have been trained on."""
    parts = [given.batches, *given.blocks, *([given.prior_rows] if given.prior_rows is not None else [])]
    common = sum(shared_rows(part, rows) for part in parts)
    return (f"{common:,} of them are also in the training data",) if common else ()
