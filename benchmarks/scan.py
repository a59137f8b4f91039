"""What comes before training costs: its share of training, passes over the data, and the error that a subset brings.

    python benchmarks/scan.py [--only digits] [--rounds 3] [--json FILE]

Every network is trained by default runs of `pactrain.fit`.  `ratio_to_training` is over all epochs of training: for `scan` the time of the
scan, for `linearised` that of the linearised network, for `before training` everything from the call to the first step.  A twentieth of the
epochs is trained and counted twenty times; where γ is walked down, training has one segment more than its first, as no walk is shorter.
Times are processor times of one thread, so that others at work hardly matter.
"""

import math
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from rows import ROWS
from threadpoolctl import threadpool_limits
from timing import options, show, warn_if_busy

import pactrain
from pactrain.rules.constants import FURTHER_LENGTH
from pactrain.rules.gamma.linear_leave_one_out import linearise
from pactrain.rules.presets import AUTO
from pactrain.runtime.events import Event
from pactrain.training.prior_scan import PriorScan

RUNS = (
    "digits",
    "iris",
    "wine",
    "uci:concrete",
    "mnist 1000 mlp",
    "mnist 10000 mlp",
    "cifar10 5000 cnn",
    "cora_ml gcn",
    "sst2 100",
)
PART = 20
"""Of the epochs, one in so many is trained."""


def run(row: str, seed: int) -> dict[str, float]:
    """Train once and split the time; in units of a whole training."""
    problem = ROWS[row](seed)
    size = AUTO.batch(problem.rows)
    epochs = AUTO.stage1_epochs(1 if problem.batch_size is None else max(1, round(problem.rows / size)))
    trained = max(3, math.ceil(epochs / PART))
    ends: list[float] = []  # of epochs
    took = {"scan": 0.0, "linearised": 0.0}

    def watch(event: Event) -> None:
        if event.phase == "train":
            ends.append(time.process_time())

    def timed(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            started = time.process_time()
            found = plain(*args, **more)
            took[name] += time.process_time() - started
            return found

        return call

    model, data = problem.model(), problem.data(torch.arange(problem.rows))
    started = time.process_time()
    with (
        mock.patch("pactrain.rules.start_values.linearise", timed(linearise, "linearised")),
        mock.patch.object(PriorScan, "moment", timed(PriorScan.moment, "scan")),
        mock.patch("pactrain.certification.after_training.affordable_draws", return_value=1),
    ):
        result = pactrain.fit(model, data, loss=problem.loss, callbacks=(watch,), budget=f"{trained} epochs", seed=seed)
    moment = result.moment
    epoch = (ends[-1] - ends[0]) / (trained - 1)
    walks = result.metrics["left_out"] is not None
    training = (1 + walks * FURTHER_LENGTH) * epochs * epoch
    return {
        **{name: seconds / training for name, seconds in took.items()},
        "before training": (ends[0] - epoch - started) / training,
        "passes": moment.measured * moment.n_used / moment.n,
        "examples": moment.n_used,
        "of": moment.n,
        "error": result.metrics["scan"]["error"],
    }


def summary(row: str, runs: list[dict[str, float]]) -> list[dict[str, Any]]:
    """The rows of a network: median, smallest and largest; and what is to be told of the scan."""
    rows: list[dict[str, Any]] = []
    for method in ("scan", "linearised", "before training"):
        found = [r[method] for r in runs]
        ratios = {"ratio_to_training": statistics.median(found), "low": min(found), "high": max(found)}
        rows.append({"network": row, "method": method} | ratios)
    rows[0] |= {name: statistics.median(r[name] for r in runs) for name in ("passes", "examples", "of", "error")}
    return rows


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, rounds=3)
    warn_if_busy()
    torch.set_num_threads(1)
    threadpool_limits(1)  # of numpy
    rows: list[dict[str, Any]] = []
    run("iris", 0)  # whatever torch does once
    for row in RUNS:
        if chosen.only and chosen.only not in row:
            continue
        try:
            rows += summary(row, [run(row, seed) for seed in range(chosen.rounds)])
        except (pactrain.PactrainError, ImportError) as error:
            print(f"{row} is left out: {error}")
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
