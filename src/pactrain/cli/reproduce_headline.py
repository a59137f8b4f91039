"""`pactrain reproduce headline`: CNN9 on all of CIFAR-10, over days if need be, with its table and figure."""

import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pactrain.cli.output import table
from pactrain.cli.recipe import ImageRecipe

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain.experiments.headline import Line
    from pactrain.experiments.table_cells import CarryOut

Method = Literal["auto", "authors", "adam", "adamw-grid"]

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Parts of all steps at which the curves are compared in the table."""


@dataclass
class Headline(ImageRecipe):
    """CNN9 on all of CIFAR-10."""

    network: str = "cnn9"
    """The network: cnn9, vgg13, resnet18:norm=group, …"""
    methods: tuple[Method, ...] = ("auto", "authors", "adam", "adamw-grid")
    """What is trained, in this order; every method takes the same number of steps."""
    width: float | None = None
    """Factor on the network's width; 0.5 at the scale cpu, 1 at the scale paper."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 trains under bfloat16 autocast, which is faster where the processor has it."""
    show: bool = False
    """Train nothing: print and draw what there is, unfinished trainings included."""
    out: Path = Path("headline.png")
    """The file to draw into: .svg, .png or .pdf."""

    def result(self, screen: "Console", carry_out: "CarryOut") -> dict[str, Any]:
        """Train what is not in the store, print the table, draw the curves, and return what both show."""
        from pactrain.experiments import headline as h
        from pactrain.experiments import image_drawings as draw
        from pactrain.experiments.store import Store

        draw.check_name(self.out)
        epochs = self.epochs or h.EPOCHS
        precision = None if self.precision == "fp32" else self.precision
        declared = h.headline(
            self.scale,
            network=self.network,
            width=self.width,
            epochs=epochs,
            methods=self.methods,
            precision=precision,
        )
        if self.images is not None:
            declared = declared.changed({"images": self.images})
        plan = h.plan_of(declared, seeds=self.seeds, unfinished=self.store.with_suffix(".unfinished"))
        runs = [of[seed] for seed in range(self.seeds) for of in plan.values()]
        rows = Store(self.store).of(runs) if self.show else {row.identity: row for row in carry_out(runs)}
        trainings = h.trainings_of(plan, rows)
        most = max((t.steps for of in trainings.values() for t in of), default=0)
        steps = [round(share * most) for share in SHARES]
        lines = h.lines_of(trainings, steps)
        show(screen, lines, steps, f"{self.network}, width {declared.common['width']:g}, {epochs} epochs")
        for run in runs:
            if (error := rows[run.identity].error if run.identity in rows else None) is not None:
                screen.print(
                    f"{run.group}, seed {run.seed}, failed; the next call tries it again:\n{error}", markup=False
                )
        draw.write_figure(draw.draw_headline(trainings), self.out)
        screen.print(f"Drawn into {self.out}", markup=False)
        curves = {name: [vars(t) for t in of] for name, of in trainings.items()}
        return {"lines": [vars(line) for line in lines], "at_steps": steps, "curves": curves, "figure": str(self.out)}


def show(screen: "Console", lines: "list[Line]", steps: list[int], title: str) -> None:
    """The table: test accuracy at the end, and at equal steps before it."""
    rows = [
        [line.name + (" ← best of the grid" if line.best_of_grid else ""), _end(line), f"{line.steps:,}"]
        + ["" if value is None else f"{value:.1f}" for value in line.at]
        for line in lines
    ]
    titles = ["", "test, all images", "steps", *(f"at {step:,}" for step in steps)]
    screen.print(table(f"{title}: test accuracy in percent", titles, rows))
    if any(line.best_of_grid for line in lines):
        screen.print("The best of the grid is chosen by the test images, which flatters AdamW.")
    screen.print("At steps: the mean network on the same 2,048 test images, or all if there are fewer.")


def _end(line: "Line") -> str:
    if not line.scores:
        return "unfinished"
    deviation = statistics.stdev(line.scores) if len(line.scores) > 1 else math.nan
    spread = "" if math.isnan(deviation) else f" ± {deviation:.1f}"
    return f"{statistics.fmean(line.scores):.1f}{spread} ({len(line.scores)} of {line.trainings})"
