"""How the step of `fit` grows with the weights and the prior's groups, and `fit`'s overhead with the data.

    python benchmarks/scaling.py [--only weights] [--rounds 7] [--json FILE]

weights   one step without forward and backward (draw and learn) for 10⁵ to 1.6·10⁷ weights: nanoseconds a weight
groups    the same for 2²⁰ weights shared out over 1 to 256 groups
n         an epoch of `fit` beyond its steps and beyond picking the rows of its batches, which any training does: the order of the
          rows, the history, the record; for 10³ to 6.4·10⁴ examples
"""

import statistics
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from timing import interleaved, options, ratio, show, warn_if_busy
from torch import Tensor, nn

import pactrain
from pactrain import Posterior, Prior
from pactrain.auto import AUTO
from pactrain.batches import TensorBatches
from pactrain.curvature import CurvatureStds
from pactrain.stages import Trainer

WEIGHTS = [100_000 * 4**i for i in range(4)] + [16_000_000]
GROUPS = [1, 4, 16, 64, 256]
EXAMPLES = [1_000 * 4**i for i in range(4)]


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


def grown(name: str, sizes: list[int], steps: dict[int, Any], rounds: int, *, by_size: bool) -> list[dict[str, Any]]:
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


def overhead(n: int) -> float:
    """Processor seconds of an epoch beyond its steps and the rows of its batches."""
    x = torch.randn(n, 32)
    inside, clock = 0.0, time.process_time
    spent: list[float] = []

    def timed(plain: Any) -> Any:
        def call(*args: Any) -> Any:
            nonlocal inside
            started = clock()
            value = plain(*args)
            inside += clock() - started
            return value

        return call

    def epoch(self: Trainer) -> Iterator[Any]:
        started, before = clock(), inside
        for record in epochs(self):
            spent.append(clock() - started - (inside - before))
            yield record
            started, before = clock(), inside

    epochs = Trainer.epochs
    with (
        mock.patch.object(Trainer, "step", timed(Trainer.step)),
        mock.patch.object(TensorBatches, "_rows", timed(TensorBatches._rows)),
        mock.patch.object(Trainer, "epochs", epoch),
    ):
        pactrain.fit(
            nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)),
            (x, (x[:, 0] > 0).long()),
            preset=AUTO.replace(draws=1, batch_size=256, large_batch_size=256),
            budget="5 epochs",
        )
    return statistics.median(spent)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, rounds=7)
    warn_if_busy()
    rows: list[dict[str, Any]] = []
    if not chosen.only or chosen.only in "weights":
        rows += grown("weights", WEIGHTS, {w: update(w, 4) for w in WEIGHTS}, chosen.rounds, by_size=True)
    if not chosen.only or chosen.only in "groups":
        rows += grown("groups", GROUPS, {g: update(2**20, g) for g in GROUPS}, chosen.rounds, by_size=False)
    if not chosen.only or chosen.only in "n":
        overhead(EXAMPLES[0])
        found = {n: [overhead(n) for _ in range(3)] for n in EXAMPLES}
        for n in EXAMPLES:
            r = ratio(found[n], found[EXAMPLES[0]])
            rows.append({"network": f"{n:,} examples", "method": "fit", "ratio": r.value, "low": r.low, "high": r.high})
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
