"""Time of a training step with the number of threads that `fit` chooses, relative to the better of one thread and torch's default.

    python benchmarks/threads.py [--only cnn] [--rounds 5] [--busy 3] [--json FILE]

ours       with the number of `pactrain.problem.threads`
default    with torch's own number
quiet      with nothing else that this script started; beside: with so many processes beside it that never rest (`--busy`)

Numbers of threads take turns within a round; the best is that with the smaller median.  `OMP_WAIT_POLICY=PASSIVE` before the command
shows the step as the command line takes it.
"""

import multiprocessing
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from problems import small_cnn
from step import Problem, fit_step, labelled
from timing import interleaved, options, show, warn_if_busy

from pactrain.models.cnn import cnn
from pactrain.models.mlp import mlp
from pactrain.problem.as_loss import as_loss
from pactrain.problem.threads import threads_by_work, work_in


def problems() -> list[Problem]:
    """The networks that are measured."""

    def images(rows: int, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(rows, *shape)
        x = x.to(memory_format=torch.channels_last) if x.ndim == 4 else x
        return x, torch.randint(0, 10, (rows,))

    return [
        Problem("digits mlp", lambda: mlp(64, 10), images(64, 64), labelled, 20, n=898),
        Problem("mlp 784-600-600-600-10", lambda: mlp(784, 10, widths=(600,) * 3), images(64, 784), labelled, 4),
        Problem("the same, 250 rows", lambda: mlp(784, 10, widths=(600,) * 3), images(250, 784), labelled, 2),
        Problem("small cnn", lambda: small_cnn(1, 28, 10), images(64, 1, 28, 28), labelled, 5),
        Problem("the same cnn, 250 rows", lambda: small_cnn(1, 28, 10), images(250, 1, 28, 28), labelled, 2),
        Problem("the same cnn, 350 rows", lambda: small_cnn(1, 28, 10), images(350, 1, 28, 28), labelled, 2),
        Problem("the same cnn, 600 rows", lambda: small_cnn(1, 28, 10), images(600, 1, 28, 28), labelled, 2),
        Problem("cnn9", lambda: cnn(9), images(64, 3, 32, 32), labelled, 1),
    ]


def spin() -> None:
    parent = os.getppid()
    while os.getppid() == parent:  # a benchmark that is killed leaves nothing behind
        pass


@contextmanager
def beside(count: int) -> Iterator[None]:
    """Inside the block so many processes never rest."""
    others = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(count)]
    for process in others:
        process.start()
    try:
        yield
    finally:
        for process in others:
            process.terminate()
            process.join()


def measured(problem: Problem, *, default: int, ours: int, rounds: int) -> tuple[float, float]:
    """Times with our number and with torch's own, relative to the best."""
    torch.manual_seed(0)
    step = fit_step(problem)

    def with_threads(number: int) -> Any:
        def run() -> None:
            torch.set_num_threads(number)
            step()

        return run

    numbers = sorted({1, ours, default})
    seconds = interleaved({str(n): with_threads(n) for n in numbers}, rounds=rounds, steps=problem.steps)
    torch.set_num_threads(default)
    medians = {n: statistics.median(seconds[str(n)]) for n in numbers}
    best = min(medians.values())
    return medians[ours] / best, medians[default] / best


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, rounds=5, busy=3)
    warn_if_busy()
    default, rows = torch.get_num_threads(), []
    for problem in problems():
        if chosen.only and chosen.only not in problem.name:
            continue
        work = work_in(problem.model(), problem.batch, as_loss(problem.loss, None))
        ours = threads_by_work(work, default)
        row: dict[str, Any] = {"network": problem.name, "million operations": work / 1e6, "threads": ours}
        for place, count in (("quiet", 0), (f"beside {chosen.busy}", chosen.busy)):
            with beside(count):
                pair = measured(problem, default=default, ours=ours, rounds=chosen.rounds)
            row |= {f"ours, {place}": pair[0], f"default, {place}": pair[1]}
        rows.append(row)
    show(rows, chosen.json)
    print(f"OMP_WAIT_POLICY: {os.environ.get('OMP_WAIT_POLICY', 'not set')}")


if __name__ == "__main__":
    main()
