"""What the scan before training costs: its share of training, passes over the data, and the error its subset brings.

    python benchmarks/scan.py [--only digits] [--json FILE]

Every row is a default run of `pactrain.fit`; the scan is everything from the call to the first step.
"""

import time
from typing import Any

import torch
from rows import ROWS
from timing import options, show, warn_if_busy

import pactrain
from pactrain.events import Event

RUNS = (
    "digits",
    "iris",
    "uci:concrete",
    "mnist 1000 mlp",
    "mnist 10000 mlp",
    "cifar10 5000 cnn",
    "cora_ml gcn",
    "sst2 100",
)


def run(row: str) -> dict[str, Any]:
    """Train once and split the time."""
    problem = ROWS[row](0)
    seen: dict[str, list[float]] = {"scan": [], "train": []}

    def watch(event: Event) -> None:
        if event.phase in seen:
            seen[event.phase].append(time.perf_counter())

    started = time.perf_counter()
    data = problem.data(torch.arange(problem.rows))
    moment = pactrain.fit(problem.model(), data, loss=problem.loss, callbacks=(watch,)).moment
    epochs = [b - a for a, b in zip(seen["train"], seen["train"][1:], strict=False)]
    training = seen["train"][-1] - seen["train"][0] + sum(epochs) / max(1, len(epochs))
    before = seen["train"][-1] - training - started
    scans = len(moment.log_stds) * moment.log_moments.shape[1]
    return {
        "network": row,
        "method": "scan",
        "ratio_to_training": before / training,
        "low": (seen["scan"][-1] - seen["scan"][0]) / training,
        "high": before / training,
        "passes": scans * moment.n_used / moment.n,
        "examples": moment.n_used,
        "of": moment.n,
        "largest_error_of_log_moment": float(moment.errors.max()),
    }


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__)
    warn_if_busy()
    rows = []
    for row in RUNS:
        if chosen.only and chosen.only not in row:
            continue
        try:
            rows.append(run(row))
        except (pactrain.PactrainError, ImportError) as error:
            print(f"{row} is left out: {error}")
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
