"""Coverage of intervals and sets over 200 splits of nine tables, one training per split.

Each split deals the rows of a table into training rows, calibration rows and new rows, trains a small network for a few epochs, and asks
`result.predict(new, coverage=)` for intervals or sets.  Regression tables are also given to two quantile networks and `conformal_quantiles`.

Prints, for each coverage, in how many splits the first new row lies in its interval or set, and the share of all new rows, averaged over the splits.
The counts are binomial; the last row has the interval that holds all of them at once with probability 95 %, if each network has what it promises.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import binom
from sklearn import datasets
from torch import Tensor, nn

import pactrain
from pactrain.data.load import load

COVERAGES = (0.8, 0.9)
NAMED = {"diabetes": "load_diabetes", "breast cancer": "load_breast_cancer", "wine": "load_wine", "iris": "load_iris", "digits": "load_digits"}  # fmt: skip
UCI = ("concrete", "energy", "yacht", "wine_quality_red")
CLASSES = ("breast cancer", "wine", "iris", "digits")
TABLES = (*NAMED, *UCI)
MOST = 200
"""Most training rows, and most calibration rows."""


@dataclass(frozen=True)
class Split:
    """Rows of a table, dealt; columns (and the target of a regression) in units of the training rows' standard deviation."""

    train: tuple[Tensor, Tensor]
    calibration: tuple[Tensor, Tensor]
    new: tuple[Tensor, Tensor]


def rows_of(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All rows of a table."""
    if name in NAMED:
        x, y = getattr(datasets, NAMED[name])(return_X_y=True)
        return x, y
    task = load(f"uci:{name}")
    assert task.x_test is not None
    assert task.y_test is not None
    return np.concatenate([task.x_train, task.x_test]), np.concatenate([task.y_train, task.y_test])


def deal(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], seed: int, *, classes: bool) -> Split:
    """A third of the rows to each part, at most 200 to training and to calibration."""
    size, order = min(MOST, len(x) // 3), np.random.default_rng(seed).permutation(len(x))
    first = order[:size]
    centre, scale = x[first].mean(0), np.maximum(x[first].std(0), 1e-6)
    inputs = torch.tensor((x - centre) / scale, dtype=torch.float32)
    amounts = y if classes else (y - y[first].mean()) / y[first].std()
    targets = torch.tensor(amounts, dtype=torch.int64 if classes else torch.float32)
    parts = (first, order[size : 2 * size], order[2 * size :])
    return Split(*((inputs[part], targets[part]) for part in parts))


def network(inputs: int, outputs: int, seed: int) -> nn.Module:
    """A perceptron with one small hidden layer."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


def held_by_predict(split: Split, seed: int, *, classes: int) -> list[np.ndarray[Any, Any]]:
    """For each coverage, whether each new row is in what `predict` returns."""
    (x, y), model = split.new, network(split.train[0].shape[1], classes or 1, seed)
    result = pactrain.fit(model, split.train, calibration=split.calibration, budget="5 epochs", seed=seed)
    held = []
    for coverage in COVERAGES:
        found = result.predict(x, coverage=coverage, draws=2)
        if found.sets is not None:
            held.append(found.sets[np.arange(len(y)), y.numpy()])
        else:
            assert found.low is not None
            assert found.high is not None
            held.append((found.low <= y.numpy()) & (y.numpy() <= found.high))
    return held


def held_by_quantiles(split: Split, seed: int) -> list[np.ndarray[Any, Any]]:
    """Coverage of conformalised networks of the 5 % and the 95 % quantile."""
    aside, (x, y), ends = split.calibration, split.new, []
    for level in (0.05, 0.95):
        model = network(x.shape[1], 1, seed)
        result = pactrain.fit(model, split.train, loss=f"quantile:{level}", budget="5 epochs", seed=seed)
        ends.append((result.predict(aside[0], draws=2).values, result.predict(x, draws=2).values))
    held = []
    for coverage in COVERAGES:
        pairs = zip(*ends, strict=True)
        low, high = pactrain.conformal_quantiles((*next(pairs), aside[1]), next(pairs), coverage=coverage)
        held.append((low <= y.numpy()) & (y.numpy() <= high))
    return held


def measured(name: str, splits: int) -> Iterator[dict[str, Any]]:
    """One line per method: how many first new rows were held, and the mean share of all, for each coverage."""
    x, y = rows_of(name)
    classes = int(y.max()) + 1 if name in CLASSES else 0
    ways: dict[str, Any] = {
        "sets" if classes else "intervals": lambda split, seed: held_by_predict(split, seed, classes=classes)
    }
    if not classes:
        ways["quantile networks"] = held_by_quantiles
    for way, held_by in ways.items():
        held = [held_by(deal(x, y, seed, classes=bool(classes)), seed) for seed in range(splits)]
        yield {
            "table": name, "way": way, "splits": splits,
            "first": [int(sum(bool(split[i][0]) for split in held)) for i in range(len(COVERAGES))],
            "share": [float(np.mean([split[i].mean() for split in held])) for i in range(len(COVERAGES))],
        }  # fmt: skip


def line(cells: list[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure every table, print the Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(line(["table", "what", *(f"{c:.0%}: first rows | {c:.0%}: all rows" for c in COVERAGES)]))
    print(line(["---"] * (2 + 2 * len(COVERAGES))))
    found: list[dict[str, Any]] = []
    for name in args.tables:
        for record in measured(name, args.splits):
            found.append(record)
            cells = [f"{n} | {share:.1%}" for n, share in zip(record["first"], record["share"], strict=True)]
            print(line([name, record["way"], *cells]), flush=True)
    rare = 0.025 / (len(found) * len(COVERAGES))
    limits = [[int(binom.ppf(q, args.splits, c)) for q in (rare, 1 - rare)] for c in COVERAGES]
    print(line(["promised", "", *(f"{low} to {high} | at least {c:.0%}" for c, (low, high) in zip(COVERAGES, limits, strict=True))]))  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
