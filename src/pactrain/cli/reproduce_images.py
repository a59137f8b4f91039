"""`pactrain reproduce` for the paper's tables and figures on images: options, and how results are shown."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pactrain.cli.option_types import File
from pactrain.cli.output import table
from pactrain.cli.recipe import ImageRecipe
from pactrain.cli.reproduce_headline import Headline

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain.experiments.k_scan import Ks
    from pactrain.experiments.table_cells import CarryOut
    from pactrain.experiments.tables import Score, Scores, Table


@dataclass
class ImageTable(ImageRecipe):
    """A table on images."""

    rows: tuple[str, ...] = ()
    """Only these rows, by their names in the table."""
    columns: tuple[str, ...] = ()
    """Only these columns."""
    choose: Literal["validation", "test"] = "validation"
    """How settings of plain training are chosen; test is the paper's own protocol, which flatters it."""

    def result(self, screen: "Console", carry_out: "CarryOut") -> dict[str, Any]:
        """Run it, show it, and return it."""
        from pactrain.experiments.image_tables import TABLES
        from pactrain.experiments.tables import carry_out_table

        declared = TABLES[self.name](self.scale).only(self.rows, self.columns).changed(self.changes())
        scores = carry_out_table(declared, carry_out, seeds=self.seeds, choose=self.choose)
        show(screen, declared, scores, self)
        return {
            "title": declared.title,
            "cells": [{"row": row, "column": column, **s.to_dict()} for (row, column), s in scores.items()],
        }


@dataclass
class ImageFigure(ImageRecipe):
    """A figure on images."""

    seeds: int = 1
    """Seeds; of several, figures show what they can."""
    out: File = None
    """The file to draw into: .svg, .png or .pdf; by default the recipe's name in .png."""

    def result(self, screen: "Console", carry_out: "CarryOut") -> dict[str, Any]:
        """Run it, draw it, and return what was drawn."""
        from pactrain.experiments import image_drawings as draw

        path = self.out or Path(f"{self.name}.png")
        draw.check_name(path)
        figure, values = self._drawn(screen, carry_out)
        draw.write_figure(figure, path)
        screen.print(f"Drawn into {path}", markup=False)
        return {**values, "figure": str(path)}

    def _drawn(self, screen: "Console", carry_out: "CarryOut") -> tuple[Any, dict[str, Any]]:
        from pactrain.experiments import image_drawings as draw
        from pactrain.experiments.image_figures import FIGURES, carry_out_curves, carry_out_scan
        from pactrain.experiments.k_scan import Scan

        declared = FIGURES[self.name](self.scale)
        if isinstance(declared, Scan):
            ks = carry_out_scan(replace(declared, images=self.images or declared.images), carry_out)
            show_ks(screen, ks)
            return (draw.draw_k if self.name == "figure-k" else draw.draw_k_upper)(ks), ks.to_dict()
        found = carry_out_curves(declared.changed(self.changes()), carry_out, seeds=self.seeds)
        drawing = {
            "figure-bounds-training": draw.draw_bounds_training,
            "figure-gap": draw.draw_gap,
            "figure-details": draw.draw_details,
        }[self.name]
        return drawing(declared, found), {"curves": found}


IMAGES: dict[str, tuple[type[ImageRecipe], str]] = {
    "headline": (
        Headline,
        "CNN9 on all of CIFAR-10 at equal steps: PAC-Bayes, the authors' stages, Adam, a grid of AdamW.",
    ),
    "table-bounds": (ImageTable, "CNN9, CNN13 and CNN15 trained with our bound and with six others."),
    "table-cnn": (ImageTable, "VGG, ResNet, DenseNet: PAC-Bayes against searched SGD, Adam and AdamW."),
    "table-batch-size": (ImageTable, "The same methods with batches sixteen times as large."),
    "table-learning-rate": (ImageTable, "PAC-Bayes and Adam at rates from 3e-5 to 1e-3."),
    "table-warmup": (ImageTable, "Epochs in which the stds of a layer move as one."),
    "table-batch-sizes-vgg": (ImageTable, "VGG13 with batches of five sizes."),
    "table-momentum": (ImageTable, "PAC-Bayes with SGD: its momentum and its rate."),
    "table-gamma": (
        ImageTable,
        "The range of γ (how much the data count against the prior, the noise before training).",
    ),
    "table-augmentation": (ImageTable, "With flips and crops, and without."),
    "table-stages": (ImageTable, "What each of the paper's two stages is worth."),
    "table-predictors": (ImageTable, "The mean network, a drawn one, and an ensemble of draws."),
    "figure-k": (
        ImageFigure,
        "K (how much losses vary under the prior, the noise before training) against γ1 and the prior's std, beside the sub-Gaussian and CGF constants.",
    ),
    "figure-k-upper": (ImageFigure, "K against the upper bound of the paper's lemma."),
    "figure-bounds-training": (ImageFigure, "Test accuracy while three bounds are minimised."),
    "figure-gap": (ImageFigure, "Test against training accuracy while training."),
    "figure-details": (ImageFigure, "Stds by layer and over training, K, training curves."),
}


def costs_shown(screen: "Console") -> dict[str, Any]:
    """The recipes on images with their cost at both scales."""
    from pactrain.experiments.costs import cost_of
    from pactrain.experiments.headline import headline
    from pactrain.experiments.image_figures import FIGURES
    from pactrain.experiments.image_tables import TABLES

    shown, found = [], {}
    declared: dict[str, Any] = {**TABLES, **FIGURES, "headline": headline}
    for name, (kind, about) in IMAGES.items():
        seeds = kind(name=name).seeds
        small, large = (cost_of(declared[name](scale), seeds) for scale in ("cpu", "paper"))
        found[name] = {"about": about, "seeds": seeds, "cpu": small.to_dict(), "paper": large.to_dict()}
        cells = [f"{small.trainings}", f"{small.cpu_minutes:.0f}", f"{large.trainings:,}", f"{large.steps / 1e6:,.2f}"]
        shown.append([name, *cells, f"{large.operations / 1e18:,.2f}", f"{large.gpu_hours:,.0f}"])
        screen.print(f"{name:22} {about}", markup=False)
    titles = ["", "cpu: runs", "min", "paper: runs", "10⁶ steps", "10¹⁸ flop", "GPU h"]
    screen.print(table("Costs: --scale cpu, two cores; --scale paper, one GPU at 8·10¹² flop/s", titles, shown))
    return found


def show(screen: "Console", declared: "Table", scores: "Scores", recipe: ImageTable) -> None:
    """The table, and what was done for it."""
    titles = ["", *declared.columns, *(["spread"] if declared.spread else [])]
    lines = []
    for row in declared.rows:
        of_row = [scores.get((row, column)) for column in declared.columns]
        means = [s.mean for s in of_row if s is not None]
        lines.append([row, *map(_shown, of_row), *([f"{max(means) - min(means):.1f}"] if declared.spread else [])])
    title = f"{declared.title}: percent, {recipe.seeds} seeds, {recipe.scale} scale"
    screen.print(table(title, titles, lines))
    if any(s.paper is not None for s in scores.values()):
        what = "" if recipe.scale == "paper" else ", for the whole of its data and full-width networks"
        screen.print(f"In brackets: the paper's numbers{what}.", markup=False)
    for note in declared.notes:
        screen.print(note, markup=False)
    if any(s.chosen for s in scores.values()):
        screen.print(_protocol(scores, recipe.choose), markup=False)


def _protocol(scores: "Scores", choose: str) -> str:
    failed = sum(s.failed for s in scores.values())
    searched = [s for s in scores.values() if s.chosen]
    how = (
        "on a fifth of the training images, then trained again on all of them"
        if choose == "validation"
        else "BY THE TEST SCORES THEMSELVES, as in the paper: they flatter plain training"
    )
    trainings = sum(s.trainings for s in searched)
    text = f"Settings of plain training were chosen {how} ({trainings} trainings)."
    return text + (f"  {failed} of them failed and count as the worst." if failed else "")


def _shown(score: "Score | None") -> str:
    if score is None:
        return ""
    spread = "" if math.isnan(score.deviation) else f" ± {score.deviation:.1f}"
    return f"{score.mean:.1f}{spread}" + ("" if score.paper is None else f" ({score.paper:.1f})")


def show_ks(screen: "Console", ks: "Ks") -> None:
    """K by std."""
    rows = []
    for i, std in enumerate(ks.stds):
        near = ks.near(float(std))
        others = [near[f"{name}, at this std"] for name in ks.planes]
        mark = " ← chosen" if std == ks.knee else ""
        rows.append([f"{std:.4f}{mark}", *(f"{v:.3g}" for v in (near["K"], *others, ks.lemma[i]))])
    titles = ["prior std", "K, γ1 = 0.5", *(f"{name} at this std" for name in ks.planes), "lemma"]
    screen.print(table("K", titles, rows))
    planes = ", ".join(f"{name} {value:.3g}" for name, value in ks.planes.items())
    screen.print(
        f"One constant for all these stds: {planes}.  At the chosen std K is {ks.near(ks.knee)['K']:.3g}.", markup=False
    )
