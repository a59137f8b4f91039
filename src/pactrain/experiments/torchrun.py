"""A plan carried out by the processes that torchrun has started: each takes its share of the runs, on a GPU of its own.

A training of the paper fits on one GPU, so that many trainings side by side are quicker than each on all GPUs.  All processes write
to one store, one transaction per run, so they must be on one machine; for several machines there are the backends ray and dask.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from pactrain.experiments.plan import Run, execute
from pactrain.experiments.runner import Tally, keep
from pactrain.experiments.store import Row, Store
from pactrain.runtime.events import Callback, silent

WAIT = 1.0
"""Seconds between two looks at what the other processes have done."""


def by_torchrun() -> bool:
    """True if this is one of several processes started by torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def is_first() -> bool:
    """True in the process that shows the result."""
    return not by_torchrun() or os.environ["RANK"] == "0"


def carry_out_shared(plan: Sequence[Run], store: Store | str | Path, *, progress: Callback = silent) -> list[Row]:
    """Carry out this process's share of the runs that the store does not have; wait for the others; return all rows."""
    kept = Store.at(store)
    wanted = {run.identity: run for run in plan}
    before = kept.of(wanted.values())
    over = [identity for identity, row in before.items() if row.error is None]
    todo = {identity: run for identity, run in wanted.items() if identity not in over}
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    _own_gpu()
    tally = Tally(len(wanted), todo, world, [before[identity] for identity in over])
    for run in list(wanted.values())[rank::world]:  # shares of the whole plan: what is left differs by when one looks
        if run.identity not in todo:
            continue
        outcome = execute(run.task)
        keep(kept, run, outcome)
        progress(tally.event(run, outcome))
    while True:
        rows = kept.of(wanted.values())
        if all(identity in rows and not _stale(rows[identity], before) for identity in todo):
            return [rows[identity] for identity in wanted]
        time.sleep(WAIT)


def _stale(row: Row, before: dict[str, Row]) -> bool:
    """A failure of an earlier start, which is being tried again."""
    return row.error is not None and row.identity in before and before[row.identity].finished == row.finished


def _own_gpu() -> None:
    if "LOCAL_RANK" not in os.environ:
        return
    import torch

    if int(os.environ["LOCAL_RANK"]) < torch.cuda.device_count():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
