"""The table of the README: `pactrain` with defaults against plain Adam on the same network, splits and seeds.

    python benchmarks/results.py [--readme README.md]

Prints the table; with --readme it is also put between the markers of that file.
"""

import argparse
import statistics
import time
from pathlib import Path

import torch

from pactrain.batches import as_batches
from pactrain.cli.workshop import make_model, named_loss
from pactrain.data.load import load
from pactrain.data.task import Task
from pactrain.erm import ERM, train_erm
from pactrain.errors import DataError
from pactrain.evaluate import evaluate
from pactrain.fit import fit

SETS = ("digits", "breast_cancer", "wine", "iris", "diabetes", "uci:concrete")
MARKS = ("<!-- results: made by `make results` -->", "<!-- end of results -->")


def score(values: dict[str, float]) -> float:
    """Accuracy in per cent, or rmse."""
    return 100 * values["accuracy"] if "accuracy" in values else values["rmse"]


def plain(task: Task, seed: int) -> tuple[float, float]:
    """Test score and seconds of plain Adam."""
    started = time.monotonic()
    loss = named_loss(None, task)
    model = make_model("mlp", task.inputs, task.outputs, seed)
    train_erm(model, (task.x_train, task.y_train), ERM(), loss=loss, seed=seed)
    test = as_batches((task.x_test, task.y_test), batch_size=None, device=torch.device("cpu"))
    return score(evaluate(model, test.ordered(), loss)), time.monotonic() - started


def ours(task: Task, seed: int) -> tuple[float, float, float]:
    """Test score, seconds, and the test score at the end of stage 1."""
    result = fit(
        make_model("mlp", task.inputs, task.outputs, seed),
        (task.x_train, task.y_train),
        loss=named_loss(None, task),
        test=(task.x_test, task.y_test),
        seed=seed,
    )
    return score(result.metrics["test"]), result.metrics["seconds"], score(result.metrics["stage1"]["test"])


def row(name: str, seeds: int) -> str:
    """One line of the table."""
    tasks = [load(name, seed=s, split=s) for s in range(seeds)]
    a = [plain(task, s) for s, task in enumerate(tasks)]
    b = [ours(task, s) for s, task in enumerate(tasks)]
    differences = [y[0] - x[0] for x, y in zip(a, b, strict=True)]
    ratio = sum(y[1] for y in b) / sum(x[1] for x in a)
    unit = "accuracy, %" if tasks[0].encoder.kind == "classification" else "rmse"
    cells = [name, unit, _pm([x[0] for x in a]), _pm([y[0] for y in b]), _pm([y[2] for y in b]), _pm(differences)]
    return "| " + " | ".join([*cells, f"{ratio:.1f}"]) + " |"


def _pm(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values) if len(values) > 1 else 0:.2f}"


def main() -> None:
    """Make the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--readme", type=Path)
    options = parser.parse_args()
    lines = [
        "| data | score on the test half | plain Adam | pactrain | after stage 1 | difference | time |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in options.sets:
        try:
            lines.append(row(name, options.seeds))
        except DataError as error:
            print(f"{name} left out: {error}")
            continue
        print(lines[-1], flush=True)
    if options.readme:
        text = options.readme.read_text()
        before, rest = text.split(MARKS[0])
        _, after = rest.split(MARKS[1])
        options.readme.write_text(before + MARKS[0] + "\n" + "\n".join(lines) + "\n" + MARKS[1] + after)


if __name__ == "__main__":
    main()
