"""Carrying out a plan: what is finished is kept, what fails is recorded, what is left is done as workers get free."""

import shutil
import statistics
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pactrain.experiments.backends import BackendName, open_backend
from pactrain.experiments.plan import Outcome, Run
from pactrain.experiments.store import Row, Store
from pactrain.runtime.events import Callback, Event, silent


def carry_out(
    plan: Sequence[Run],
    store: Store | str | Path,
    *,
    backend: BackendName = "loky",
    workers: int | None = None,
    address: str | None = None,
    retry_failed: bool = True,
    progress: Callback = silent,
) -> list[Row]:
    """Carry out the runs of a plan that the store does not have yet; return the rows of all, in the plan's order.

    A run that fails is stored with the text of its error, and the others go on; the next call tries it again unless
    `retry_failed=False`.  Workers return results and only this process writes them, one transaction each: killed at any
    moment it loses no stored result, and called again it goes on.  Events of phase "runs" have the values `kind`, `seconds`
    and `error` of the run that finished, the number `failed` so far, and the seconds `left`.
    """
    kept = Store.at(store)
    wanted = {run.identity: run for run in plan}
    rows = kept.of(wanted.values())
    over = {identity for identity, row in rows.items() if row.error is None or not retry_failed}
    todo = {identity: run for identity, run in wanted.items() if identity not in over}
    if todo:
        with closing(open_backend(backend, workers=workers, address=address)) as where:
            tally = Tally(len(wanted), todo, where.workers, [rows[identity] for identity in over])
            progress(tally.event())
            with closing(where.outcomes(list(todo.values()))) as outcomes:
                for run, outcome in outcomes:
                    keep(kept, run, outcome)
                    progress(tally.event(run, outcome))
    rows = kept.of(wanted.values())
    return [rows[identity] for identity in wanted]


def keep(store: Store, run: Run, outcome: Outcome) -> None:
    """Store an outcome; after a result, the run's checkpoints are deleted."""
    store.write(run, outcome)
    if run.folder and outcome.error is None:
        shutil.rmtree(run.folder, ignore_errors=True)


class Tally:
    """How far a plan is, and how long the rest will take going by how long runs of the same kind took."""

    def __init__(self, total: int, todo: dict[str, Run], workers: int, over: Iterable[Row]) -> None:
        self.total, self.todo, self.workers, self.failed = total, dict(todo), workers, 0
        self.seconds: dict[str, list[float]] = {}
        for row in over:
            self._count(row.kind, row.seconds, row.error)

    def event(self, run: Run | None = None, outcome: Outcome | None = None) -> Event:
        """What to tell, after this run if one has ended."""
        values: dict[str, Any] = {}
        if run is not None and outcome is not None:
            del self.todo[run.identity]
            self._count(run.group, outcome.seconds, outcome.error)
            values = {"kind": run.group, "seconds": outcome.seconds, "error": outcome.error}
        values |= {"failed": self.failed, "left": self.left()}
        return Event("runs", self.total - len(self.todo), self.total, values)

    def _count(self, kind: str, seconds: float, error: str | None) -> None:
        if error is None:
            self.seconds.setdefault(kind, []).append(seconds)
        else:
            self.failed += 1

    def left(self) -> float | None:
        """Seconds; None as long as no run has finished.  A kind without a finished run is taken for an average one."""
        if not self.seconds:
            return None
        known = {kind: statistics.fmean(seconds) for kind, seconds in self.seconds.items()}
        usual = statistics.fmean(known.values())
        each = [known.get(run.group, usual) for run in self.todo.values()]
        return max(sum(each) / self.workers, max(each, default=0.0))
