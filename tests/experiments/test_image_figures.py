"""Figures of small runs on images."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pactrain.experiments import image_drawings as draw
from pactrain.experiments.image_figures import FIGURES, Curves, carry_out_curves
from tests.experiments.small_images import Here


@pytest.mark.slow
def test_figures_of_small_runs(cifar: Path) -> None:
    here = Here(cifar)
    tiny: dict[str, Any] = {
        "network": "vgg13",
        "width": 1 / 16,
        "images": 32,
        "test_images": 40,
        "epochs": 2,
        "batch_size": 16,
    }
    gap = FIGURES["figure-gap"]("cpu")
    assert isinstance(gap, Curves)
    kept = ("PAC-Bayes, defaults", "PAC-Bayes, authors", "SGD 0.1", "Adam 1e-3")
    few = dataclasses.replace(
        gap.changed(tiny),
        curves={k: v for k, v in gap.curves.items() if k in kept},
        panels={title: tuple(n for n in names if n in kept) for title, names in gap.panels.items()},
    )
    found = carry_out_curves(few, here, seeds=1)
    assert {name: len(runs[0]["history"]) for name, runs in found.items()}["SGD 0.1"] == 2
    draw.write_figure(draw.draw_gap(few, found), cifar / "gap.png")
    ours = {name: runs for name, runs in found.items() if name.startswith("PAC")}
    draw.write_figure(draw.draw_details(few, ours), cifar / "details.svg")
    draw.write_figure(draw.draw_bounds_training(few, ours), cifar / "training.pdf")
    assert all((cifar / name).stat().st_size > 5000 for name in ("gap.png", "details.svg", "training.pdf"))
