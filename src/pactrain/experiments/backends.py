"""Where runs are carried out: processes of this machine (loky), a Ray cluster, a Dask cluster.

Each turns runs into outcomes as they finish, and survives workers that die: a run is tried `ATTEMPTS` times.
Joblib's own Ray backend cannot return results one by one, and its Dask backend waits for ever for a run whose worker died
too often; those two are therefore asked directly.
"""

import importlib
import os
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Literal, Protocol

from pactrain.experiments.plan import Outcome, Run, execute, lost
from pactrain.runtime.errors import PactrainError

BackendName = Literal["loky", "ray", "dask"]
Outcomes = Generator[tuple[Run, Outcome], None, None]

ATTEMPTS = 3
"""How often a run may lose its worker before it counts as failed."""


class Backend(Protocol):
    """Somewhere to carry out runs."""

    workers: int  # runs carried out at once

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        """Every run with its outcome, as they finish."""

    def close(self) -> None:
        """Let go of what was started."""


def open_backend(name: BackendName, *, workers: int | None, address: str | None) -> Backend:
    """The backend of this name; `workers=None` takes every core there is."""
    if workers is not None and workers < 1:
        raise PactrainError(f"workers={workers}: at least one is needed")
    if address is not None and (name == "loky" or workers is not None):
        why = "loky runs on this machine only" if name == "loky" else "the cluster says how many workers it has"
        raise PactrainError(f"address {address!r} does not go with {'loky' if name == 'loky' else 'workers'}: {why}")
    if name == "loky":
        return Loky(workers)
    if name == "ray":
        return Ray(workers, address)
    if name == "dask":
        return Dask(workers, address)
    raise PactrainError(f"backend {name!r} is not known; use loky, ray or dask")


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PactrainError(f"backend {extra} is not installed here: pip install 'pactrain[{extra}]'") from error


class Loky:
    """Processes of this machine, through joblib."""

    def __init__(self, workers: int | None) -> None:
        from joblib import cpu_count

        self.workers: int = workers or cpu_count()

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        """When a worker dies all are started anew, for nobody knows whose fault it was.

        A run that has seen it happen too often is tried once more, alone; if it happens again the run counts as failed.
        """
        waiting = {run.identity: run for run in runs}
        deaths: Counter[str] = Counter()
        while waiting:
            together = [run for run in waiting.values() if deaths[run.identity] < ATTEMPTS - 1]
            handed: list[str] = []
            try:
                for identity, outcome in self._side_by_side(together or [*waiting.values()][:1], handed):
                    yield waiting.pop(identity), outcome
            except BrokenProcessPool as error:
                deaths.update(identity for identity in handed if identity in waiting)
                if not together:
                    yield waiting.pop(handed[0]), lost(f"its worker died {ATTEMPTS} times, at last alone: {error}")

    def _side_by_side(self, runs: Sequence[Run], handed: list[str]) -> Iterator[tuple[str, Outcome]]:
        from joblib import Parallel, delayed, parallel_config

        def calls() -> Iterator[Any]:
            for run in runs:
                handed.append(run.identity)
                yield delayed(_work)(run.identity, run.task)

        with parallel_config(backend="loky", inner_max_num_threads=1):
            # with n_jobs=1 joblib would use the driver's own process; as many as are pre-dispatched run at once
            pool = Parallel(
                n_jobs=max(2, self.workers), pre_dispatch=self.workers, batch_size=1, return_as="generator_unordered"
            )
        yield from pool(calls())

    def close(self) -> None:
        """Nothing to do: idle processes end by themselves."""


def _work(identity: str, task: dict[str, Any]) -> tuple[str, Outcome]:
    if not any(thread.name == _end_with_driver.__name__ for thread in threading.enumerate()):
        threading.Thread(
            target=_end_with_driver, args=(os.getppid(),), name=_end_with_driver.__name__, daemon=True
        ).start()
    return identity, execute(task)


def _end_with_driver(driver: int) -> None:
    """A driver that was killed leaves its workers behind; they would go on and compete with those of the next one."""
    while os.getppid() == driver:
        time.sleep(0.5)
    os._exit(1)


class Ray:
    """Tasks of a Ray cluster: that at `address`, or one started here."""

    def __init__(self, workers: int | None, address: str | None) -> None:
        self.ray = _extra("ray", "ray")
        self.own = not self.ray.is_initialized()
        if self.own:
            local = {} if address else {"num_cpus": workers, "include_dashboard": False}
            self.ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **local)
        self.workers = max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        """Ray itself tries a run again when its worker dies."""
        task = self.ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(execute)
        waiting = {task.remote(run.task): run for run in runs}
        try:
            while waiting:
                for done in self.ray.wait([*waiting], num_returns=1)[0]:
                    yield waiting.pop(done), self._outcome(done)
        finally:
            for left in waiting:
                self.ray.cancel(left, force=True)

    def _outcome(self, done: Any) -> Outcome:
        try:
            outcome: Outcome = self.ray.get(done)
        except self.ray.exceptions.RayError as error:
            return lost(f"{type(error).__name__}: {error}")
        return outcome

    def close(self) -> None:
        """Leave the cluster, or end it if it was started here."""
        if self.own:
            self.ray.shutdown()


class Dask:
    """Tasks of a Dask cluster: that at `address`, or one started here."""

    def __init__(self, workers: int | None, address: str | None) -> None:
        self.distributed = _extra("distributed", "dask")
        self.cluster = None
        if address is None:
            self.cluster = self.distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            )
        self.client = self.distributed.Client(address or self.cluster, set_as_default=False)
        threads = self.client.nthreads()
        if any(n > 1 for n in threads.values()):
            self.close()
            raise PactrainError(
                f"the Dask workers at {address} have several threads, and torch's random numbers belong to the process; "
                "start them with dask worker --nworkers N --nthreads 1"
            )
        self.workers = max(1, len(threads))

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        """Dask itself tries a run again when its worker dies."""
        waiting = {self.client.submit(execute, run.task, pure=False): run for run in runs}
        try:
            for done in self.distributed.as_completed([*waiting], loop=self.client.loop):
                yield waiting.pop(done), self._outcome(done)
        finally:
            self.client.cancel([*waiting], force=True)

    @staticmethod
    def _outcome(done: Any) -> Outcome:
        error = done.exception()  # KilledWorker, say: a run's own errors are in its outcome
        if error is None:
            try:
                outcome: Outcome = done.result()
                return outcome
            except (CancelledError, OSError) as gone:  # lost connections are OSErrors
                error = gone
        return lost(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Leave the cluster, or end it if it was started here."""
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()
