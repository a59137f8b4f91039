"""What a recipe costs: trainings, steps, floating-point operations, and hours from a rate at which they are done.

A training step counts as three forward passes of its batch.  `fit` adds its scan, a look at some images each epoch, and the draws
of its certificate; everything is judged on the test images once.  `benchmarks/images.py` measures the rates.
"""

import functools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from pactrain.baselines.grid_search import VALIDATION_PART
from pactrain.certification.risks import CHUNK, CHUNK_DRAWS
from pactrain.experiments.image_figures import Curves
from pactrain.experiments.images import CLASSES
from pactrain.experiments.k_scan import Scan
from pactrain.experiments.tables import Cell, Table
from pactrain.models.image import image_model
from pactrain.rules.constants import SCAN_SHARE
from pactrain.rules.presets import rules_for
from pactrain.training.budget import parse_budget
from pactrain.training.history import epochs_between, rows_measured

CPU_RATE = 30e9
"""Operations a second that a core of the machine these recipes were sized on gets out of the narrow networks."""

GPU_RATE = 8e12
"""Operations a second of one GPU: an assumption, some 30 % of the float32 peak of the paper's A5000."""

INPUTS = 3 * 32 * 32


@dataclass(frozen=True)
class Cost:
    """Trainings, steps and operations of a recipe."""

    trainings: int = 0
    steps: int = 0
    operations: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.trainings + other.trainings, self.steps + other.steps, self.operations + other.operations)

    @property
    def cpu_minutes(self) -> float:
        """On two cores."""
        return self.operations / (2 * CPU_RATE) / 60

    @property
    def gpu_hours(self) -> float:
        """On one GPU."""
        return self.operations / GPU_RATE / 3600

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "minutes_on_two_cores": self.cpu_minutes, "gpu_hours": self.gpu_hours}


@functools.cache
def forward(network: str, classes: int) -> float:
    """Operations of a forward pass of one image."""
    with torch.device("meta"):
        model = image_model(network, INPUTS, classes).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.empty(1, 3, 32, 32))
    return float(counter.get_total_flops())


def cost_of(recipe: Table | Curves | Scan, seeds: int) -> Cost:
    """The cost of a recipe with so many seeds."""
    if isinstance(recipe, Scan):
        passes = recipe.images * recipe.draws * recipe.points
        return Cost(0, 0, passes * forward(recipe.network, CLASSES[recipe.data]))
    table = recipe if isinstance(recipe, Table) else recipe.table()
    once: dict[str, Cost] = {}
    for cell in table.cells().values():
        key = json.dumps([cell.method, dict(cell.settings), [dict(t) for t in cell.tried]], sort_keys=True)
        once[key] = sum(_trainings(cell), Cost())
    total = sum(once.values(), Cost())
    return Cost(seeds * total.trainings, seeds * total.steps, seeds * total.operations)


def _trainings(cell: Cell) -> Iterator[Cost]:
    for _ in cell.tried:
        yield _training(cell, 1 - VALIDATION_PART)
    yield _training(cell, 1.0)


def _training(cell: Cell, part: float) -> Cost:
    s = cell.settings
    images, batch = part * s["images"], s["batch_size"]
    an_epoch = max(1, round(images / batch))
    each = forward(s["network"], CLASSES[s["data"]])
    if cell.method == "plain":
        passes, looks = images * s["epochs"], s["epochs"] * (s["images"] - images)
        return Cost(1, an_epoch * s["epochs"], each * (3 * passes + looks + s["test_images"]))
    rules = rules_for(s.get("preset", "auto"))
    most = parse_budget(s.get("budget")).epochs or math.inf
    epochs = s["epochs"] or int(min(most, rules.stage1_epochs(an_epoch)))
    passes = images * (epochs + s.get("stage2", 0))
    extra = (
        3 * SCAN_SHARE * images * epochs
        + epochs // epochs_between(epochs) * rows_measured(round(images))
        + CHUNK * CHUNK_DRAWS
    )
    steps = math.ceil(passes / images) * an_epoch
    return Cost(1, steps, each * (3 * passes + extra + s["test_images"]))
