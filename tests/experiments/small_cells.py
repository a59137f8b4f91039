"""A cell of a table, and runs whose results are known."""

from collections.abc import Sequence
from typing import Any

from pactrain.experiments import Run
from pactrain.experiments.store import Row
from pactrain.experiments.table_cells import Cell


def answers(run: Run) -> dict[str, Any] | None:
    """Scores that tell apart what was chosen how: setting 1 is best in validation, 2 in the test, 3 fails."""
    common = {"seconds": 1.0, "cpu_seconds": 0.5}
    if run.function == "m:pac":
        return common | {"test": 0.9 + 0.01 * run.seed}
    k = run.settings["k"]
    if run.settings.get("epochs"):
        return common | {"test": 0.8 + 0.01 * run.seed + 0.001 * k}
    if k == 3:
        return None
    validation = [0.5, 0.7, 0.7][k]
    scores = {"validation": validation, "validation_loss": [1.0, 0.4, 0.6][k], "test": [0.5, 0.6, 0.7][k]}
    return common | scores | {"best_step": 40 + k}


def carry_out(plan: Sequence[Run]) -> list[Row]:
    found = [answers(run) for run in plan]
    return [
        Row(run.identity, run.group, run.config, run.seed, m, None if m else "boom", 1.0, {}, "")
        for run, m in zip(plan, found, strict=True)
    ]


def cell(retrain: bool) -> Cell:
    return Cell(
        ("g", "m"),
        tuple(Run("m:pac", {}, s) for s in range(2)),
        tuple(tuple(Run("m:erm", {"k": k}, s) for k in range(4)) for s in range(2)),
        "epochs" if retrain else None,
    )
