"""CNN9 on all of CIFAR-10: PAC-Bayes, the authors' two stages, Adam and a small grid of AdamW, all with the same number of epochs.

`auto` is `fit` with nothing changed but its budget.  The two stages are cut to the paper's proportion, 500 : 200, with a warm-up of a
tenth of the first.  The grid is trained on all images and its best is taken by the test images, which flatters it and saves the
second training that a choice on held-out images would need.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pactrain.baselines.checkpoint import kept_history
from pactrain.baselines.grid_search import combinations
from pactrain.experiments.image_figures import Curves
from pactrain.experiments.image_scales import STAGE1, STAGE2, Scale, Settings
from pactrain.experiments.plan import Run
from pactrain.experiments.store import Row
from pactrain.runs.folder import read_history

EPOCHS = 30
"""As many as the default rules take with 50,000 images."""

WIDTHS: dict[Scale, float] = {"cpu": 0.5, "paper": 1.0}

GRID: dict[str, Sequence[Any]] = {"lr": (3e-4, 1e-3), "weight_decay": (1e-2, 1e-1), "dropout": (0.0, 0.3)}
"""Settings of AdamW; torch multiplies the decay by the rate."""

Record = Mapping[str, Any]


def _auto(epochs: int) -> dict[str, Settings]:
    return {"auto": {"epochs": None, "budget": f"{epochs} epochs"}}


def _authors(epochs: int) -> dict[str, Settings]:
    first = max(1, round(epochs * STAGE1 / (STAGE1 + STAGE2)))
    rules = {"warmup_epochs": round(first / 10)}
    return {"authors": {"preset": "authors", "epochs": first, "stage2": epochs - first, "rules": rules}}


def _adam(epochs: int) -> dict[str, Settings]:
    return {"adam": {"method": "plain", "optimizer": "adam", "lr": 1e-3, "schedule": "cosine", "epochs": epochs}}


def _adamw_grid(epochs: int) -> dict[str, Settings]:
    same = {"method": "plain", "optimizer": "adamw", "schedule": "cosine", "epochs": epochs}
    return {
        "adamw " + " ".join(f"{name} {value:g}" for name, value in chosen.items()): same | chosen
        for chosen in combinations(GRID)
    }


METHODS: dict[str, Callable[[int], dict[str, Settings]]] = {
    "auto": _auto,
    "authors": _authors,
    "adam": _adam,
    "adamw-grid": _adamw_grid,
}


def headline(
    scale: Scale,
    *,
    network: str = "cnn9",
    width: float | None = None,
    epochs: int = EPOCHS,
    methods: Sequence[str] = tuple(METHODS),
    precision: str | None = None,
) -> Curves:
    """CNN9 on all of CIFAR-10, every method with the same number of epochs.

    Args:
        scale: "paper" for the full width, "cpu" for half of it.
        network: Name of the network.
        width: Factor on the width, if not that of the scale.
        epochs: Passes over the images.
        methods: Names from `METHODS`.
        precision: "bf16" trains under bfloat16 autocast.
    """
    curves = {name: settings for method in methods for name, settings in METHODS[method](epochs).items()}
    common = {"data": "cifar10", "images": 50_000, "test_images": 10_000, "batch_size": 128, "network": network}
    common |= {"width": WIDTHS[scale] if width is None else width}
    common |= {} if precision is None else {"precision": precision}
    return Curves(f"{network}, test accuracy at equal steps", curves, {"": tuple(curves)}, common, {})


def plan_of(declared: Curves, *, seeds: int, unfinished: Path) -> dict[str, list[Run]]:
    """The runs of each curve, one per seed; each can go on after a stop, from a folder below `unfinished`."""
    cells = declared.table().cells()
    runs = {name: [cells[name, ""].run(seed, {}) for seed in range(seeds)] for name in declared.curves}
    return {name: [replace(r, folder=str(unfinished / r.identity)) for r in of] for name, of in runs.items()}


@dataclass(frozen=True)
class Training:
    """One training as far as it got: the records of its epochs, and the test accuracy on all test images once it has ended."""

    seed: int
    history: Sequence[Record]
    test: float | None = None

    @property
    def steps(self) -> int:
        """Steps taken."""
        return int(self.history[-1]["step"]) if self.history else 0

    def at(self, step: float) -> float | None:
        """Test accuracy in percent, on the images of the curve, at the last epoch that ended by this step; None beyond its end."""
        seen = [r for r in self.history if r["step"] <= step * (1 + 1e-9)]
        return 100 * seen[-1]["test"]["accuracy"] if seen and self.steps >= step * (1 - 1e-9) else None


def trainings_of(plan: Mapping[str, Sequence[Run]], rows: Mapping[str, Row]) -> dict[str, list[Training]]:
    """What there is of each curve, from the store's rows and from the folders of unfinished trainings."""
    trainings: dict[str, list[Training]] = {}
    for name, runs in plan.items():
        for run in runs:
            row = rows.get(run.identity)
            if row is not None and row.metrics is not None:
                here = Training(run.seed, row.metrics["history"], 100 * row.metrics["test"])
            else:
                folder = Path(run.folder)
                here = Training(run.seed, read_history(folder / "history.jsonl") or kept_history(folder))
            if here.history:
                trainings.setdefault(name, []).append(here)
    return trainings


@dataclass(frozen=True)
class Line:
    """A line of the table: test accuracies in percent of the trainings that have ended, and the curve at a few steps.

    Attributes:
        name: Of the method.
        scores: On all test images, one per finished training.
        trainings: Number of trainings, finished or not.
        steps: The fewest that one of them has taken.
        at: Mean accuracy on the curve's images at each of some steps; None where a training has not come that far.
        best_of_grid: True for the best of AdamW's grid, by the test images.
    """

    name: str
    scores: tuple[float, ...]
    trainings: int
    steps: int
    at: tuple[float | None, ...]
    best_of_grid: bool = False


def lines_of(trainings: Mapping[str, Sequence[Training]], steps: Sequence[float]) -> list[Line]:
    """The lines of the table, with the curves at these steps."""
    lines = []
    for name, of in trainings.items():
        columns = [[t.at(step) for t in of] for step in steps]
        at = tuple(None if None in c else statistics.fmean(v for v in c if v is not None) for c in columns)
        scores = tuple(t.test for t in of if t.test is not None)
        lines.append(Line(name, scores, len(of), min(t.steps for t in of), at))
    best = best_of_grid(trainings)
    return [replace(line, best_of_grid=line.name == best) for line in lines]


def best_of_grid(trainings: Mapping[str, Sequence[Training]]) -> str | None:
    """The setting of AdamW with the best mean test accuracy, as far as all its trainings have ended."""
    means = {
        name: statistics.fmean(t.test for t in of if t.test is not None)
        for name, of in trainings.items()
        if name.startswith("adamw ") and all(t.test is not None for t in of)
    }
    return max(means, key=means.__getitem__) if means else None
