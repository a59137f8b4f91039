"""Tables on images: what is declared, and a small one through the real runs."""

from pathlib import Path

import pytest

from pactrain.cli.reproduce_images import IMAGES
from pactrain.experiments.costs import cost_of, forward
from pactrain.experiments.image_figures import FIGURES
from pactrain.experiments.image_tables import TABLES
from pactrain.experiments.tables import Table, carry_out_table
from tests.experiments.small_images import Here

NAMES = {
    "table-bounds", "table-cnn", "table-batch-size", "table-learning-rate", "table-warmup", "table-batch-sizes-vgg",
    "table-momentum", "table-gamma", "table-augmentation", "table-stages", "table-predictors",
    "figure-k", "figure-k-upper", "figure-bounds-training", "figure-gap", "figure-details",
}  # fmt: skip


def small(table: Table) -> Table:
    return table.changed({"width": 1 / 16, "images": 32, "test_images": 40, "epochs": 1, "batch_size": 16})


def test_every_table_and_figure_is_declared_at_both_scales() -> None:
    assert set(IMAGES) - {"headline"} == {*TABLES, *FIGURES} == NAMES
    for name, declare in {**TABLES, **FIGURES}.items():
        seeds = IMAGES[name][0](name=name).seeds
        cpu, paper = (cost_of(declare(scale), seeds) for scale in ("cpu", "paper"))
        limit = 20 if name.startswith("figure") else 90
        assert 0 < cpu.cpu_minutes < limit
        assert paper.operations > 50 * cpu.operations
    assert forward("cnn9", 10) == pytest.approx(2 * 137.7e6, rel=0.01)


def test_the_papers_numbers_stand_beside_cells() -> None:
    for declare in TABLES.values():
        table = declare("paper")
        assert set(table.paper) <= set(table.cells())
    assert TABLES["table-learning-rate"]("cpu").paper["vgg13 Adam", "3e-05"] == 84.3
    assert len(TABLES["table-cnn"]("paper").cells()) == 50


def test_a_small_table_is_run_and_resumed(cifar: Path) -> None:
    table = small(TABLES["table-cnn"]("cpu").only(("SGD", "layer"), ("vgg13 cifar10",)))
    here = Here(cifar)
    scores = carry_out_table(table, here, seeds=2)
    searched, ours = scores["SGD", "vgg13 cifar10"], scores["layer", "vgg13 cifar10"]
    assert searched.trainings == 2 * (4 + 1)
    assert all(c in table.cells()["SGD", "vgg13 cifar10"].tried for c in searched.chosen)
    assert (ours.trainings, len(ours.scores), ours.paper) == (2, 2, 89.7)
    assert all(0 <= score <= 100 for score in (*searched.scores, *ours.scores))
    count = len(here.done)
    assert count == 12
    assert carry_out_table(table, here, seeds=2) == scores
    assert len(here.done) == count
    by_test = carry_out_table(table.only(("SGD",), ()), here, seeds=2, choose="test")["SGD", "vgg13 cifar10"]
    assert by_test.trainings == 8
    assert by_test.chosen[0] == by_test.chosen[1]


def test_predictors_bounds_and_momentum(cifar: Path) -> None:
    here = Here(cifar)
    one = small(TABLES["table-predictors"]("cpu").only(("cnn9",), ()))
    scores = carry_out_table(one, here, seeds=1)
    assert len(here.done) == 1  # one training for all three columns
    assert len(scores) == 3
    bounds = small(TABLES["table-bounds"]("cpu").only(("cnn9",), ("quad", "CGF")))
    carry_out_table(bounds, here, seeds=1)
    quad, cgf = here.done[1:]
    assert (quad.settings["prior_data"], cgf.settings["preset"]) == (0.5, "authors")
    sgd = small(TABLES["table-momentum"]("cpu").only((), ("momentum 0.3",))).changed({"network": "cnn9"})
    assert carry_out_table(sgd, here, seeds=1)["layer", "momentum 0.3"].trainings == 1
