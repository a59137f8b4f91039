"""How the step of `fit` grows with the weights and the prior's groups, and `fit`'s overhead with the data.

    python benchmarks/scaling.py [--only weights|groups|examples] [--rounds 7] [--json FILE]

weights   one step without forward and backward (draw and learn) for 10⁵ to 1.6·10⁷ weights: nanoseconds a weight
groups    the same for 2²⁰ weights shared out over 1 to 256 groups
examples  an epoch of `fit` beyond its steps and beyond its batches (the order of the rows, and picking them), which any training has:
          the history, the record and the loop; for 4·10³ to 2.56·10⁵ examples, of which each epoch takes the same number of
          batches of the same size; and the same with the order of the rows

With `--only` the other rows of FILE stay as they are.
"""

import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from unittest import mock

import torch
from timing import interleaved, options, ratio, show, warn_if_busy
from torch import Tensor, nn

import pactrain
from pactrain import Posterior, Prior
from pactrain.problem.batches import TensorBatches
from pactrain.rules.presets import AUTO
from pactrain.training.curvature import CurvatureStds
from pactrain.training.trainer import Trainer

WEIGHTS = [100_000 * 4**i for i in range(4)] + [16_000_000]
GROUPS = [1, 4, 16, 64, 256]
EXAMPLES = [4_000 * 4**i for i in range(4)]
"""All above the number of rows on which the history is measured."""

STEPS, BATCH = 8, 500
"""An epoch ends after so many batches of so many rows, whatever the number of examples: larger batches would push the rest out
of the cache, and more of them bring the overhead of a step, which is no overhead of an epoch."""


class Pieces(nn.Module):
    """So many weights in so many equal tensors."""

    def __init__(self, weights: int, pieces: int) -> None:
        super().__init__()
        self.pieces = nn.ParameterList([nn.Parameter(torch.randn(weights // pieces)) for _ in range(pieces)])

    def forward(self, x: Tensor) -> Tensor:
        """Not used: only the update is timed."""
        return x


def update(weights: int, groups: int) -> Any:
    posterior = Posterior(Pieces(weights, groups), Prior(per="tensor", std=0.01))
    stds = CurvatureStds(posterior, kl_weight=1e-3, memory=0.99, log_std_range=(-6, 1))
    stds.flat.attach()
    stds.flat.grads.normal_()

    def step() -> None:
        stds.draw(0)
        stds.learn(1e-3, 1)

    return step


def grown(name: str, sizes: list[int], steps: dict[int, Any], *, rounds: int, by_size: bool) -> list[dict[str, Any]]:
    """One row a size, relative to the first; where `by_size`, time for each unit of it."""
    seconds = interleaved({str(size): steps[size] for size in sizes}, rounds=rounds, steps=5)
    base = seconds[str(sizes[0])]
    rows = []
    for size in sizes:
        r = ratio(seconds[str(size)], base)
        scale = sizes[0] / size if by_size else 1.0
        what = "ratio_a_weight" if by_size else "ratio"
        rows.append(
            {
                "network": f"{size:,} {name}",
                "method": "fit",
                what: r.value * scale,
                "low": r.low * scale,
                "high": r.high * scale,
            }
        )
    return rows


def overhead(n: int) -> dict[str, float]:
    """Processor seconds of an epoch beyond its steps and its batches, and with the order of the rows; the median epoch."""
    x = torch.randn(n, 32)
    spent: dict[str, list[float]] = {"fit": [], "fit and order of rows": []}
    inside, clock = {"step": 0.0, "rows": 0.0, "batches": 0.0}, time.process_time

    def timed(plain: Any, name: str) -> Any:
        def call(*args: Any) -> Any:
            started = clock()
            try:
                return plain(*args)
            finally:
                inside[name] += clock() - started

        return call

    def batches(self: TensorBatches, seed: int) -> Iterator[Any]:
        following = timed(make_batches(self, seed).__next__, "batches")
        with suppress(StopIteration):
            for _ in range(STEPS):
                yield following()

    def epochs(self: Trainer) -> Iterator[Any]:
        started, before = clock(), dict(inside)
        for record in make_epochs(self):
            whole = clock() - started
            took = {name: inside[name] - before[name] for name in inside}
            spent["fit"].append(whole - took["step"] - took["batches"])
            spent["fit and order of rows"].append(whole - took["step"] - took["rows"])
            yield record
            started, before = clock(), dict(inside)

    make_batches, make_epochs = TensorBatches.epoch, Trainer.epochs
    with (
        mock.patch.object(Trainer, "step", timed(Trainer.step, "step")),
        mock.patch.object(TensorBatches, "_rows", timed(TensorBatches._rows, "rows")),
        mock.patch.object(TensorBatches, "epoch", batches),
        mock.patch.object(Trainer, "epochs", epochs),
    ):
        pactrain.fit(
            nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)),
            (x, (x[:, 0] > 0).long()),
            preset=AUTO.replace(draws=1, batch_size=BATCH, large_batch_size=BATCH),
            budget="5 epochs",
        )
    return {method: statistics.median(seconds) for method, seconds in spent.items()}


def examples(rounds: int) -> list[dict[str, Any]]:
    """Rows for numbers of examples, relative to the fewest; with one thread, as processor time counts those that wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    overhead(EXAMPLES[0])
    found = [{n: overhead(n) for n in EXAMPLES} for _ in range(rounds)]
    torch.set_num_threads(threads)
    rows = []
    for n, method in itertools.product(EXAMPLES, found[0][EXAMPLES[0]]):
        mine = [seconds[n][method] for seconds in found]
        r = ratio(mine, [seconds[EXAMPLES[0]][method] for seconds in found])
        row = {"network": f"{n:,} examples", "method": method, "ratio": r.value, "low": r.low, "high": r.high}
        rows.append(row | {"milliseconds": 1000 * statistics.median(mine)})
    return rows


KINDS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "weights": lambda rounds: grown(
        "weights", WEIGHTS, {w: update(w, 4) for w in WEIGHTS}, rounds=rounds, by_size=True
    ),
    "groups": lambda rounds: grown(
        "groups", GROUPS, {g: update(2**20, g) for g in GROUPS}, rounds=rounds, by_size=False
    ),
    "examples": examples,
}


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, rounds=7)
    warn_if_busy()
    old = json.loads(chosen.json.read_text()) if chosen.json and chosen.json.exists() else []
    rows: list[dict[str, Any]] = []
    for kind, measured in KINDS.items():
        if not chosen.only or chosen.only in kind:
            rows += measured(chosen.rounds)
        else:
            rows += [row for row in old if row["network"].endswith(kind)]
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
