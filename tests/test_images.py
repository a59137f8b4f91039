"""Recipes on images: what is declared, what it costs, and a small table and figures through the real runs."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pactrain.certification import risks
from pactrain.cli.images import IMAGES
from pactrain.experiments import Run, Store, images
from pactrain.experiments import image_drawings as draw
from pactrain.experiments.costs import cost_of, forward
from pactrain.experiments.image_figures import FIGURES, Curves, carry_out_curves, carry_out_scan
from pactrain.experiments.image_tables import TABLES, Scale
from pactrain.experiments.k_scan import Scan
from pactrain.experiments.plan import execute
from pactrain.experiments.shared_out import carry_out_shared
from pactrain.experiments.store import Row
from pactrain.experiments.tables import Table, carry_out_table
from tests.recipes import plan

NAMES = {
    "table-bounds", "table-cnn", "table-batch-size", "table-learning-rate", "table-warmup", "table-batch-sizes-vgg",
    "table-momentum", "table-gamma", "table-augmentation", "table-stages", "table-predictors",
    "figure-k", "figure-k-upper", "figure-bounds-training", "figure-gap", "figure-details",
}  # fmt: skip


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Images whose colour tells their class, in the published binary layout."""
    chance = np.random.default_rng(0)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        labels = chance.integers(0, 10, 40).astype(np.uint8)
        shades = 20 * labels[:, None, None] + chance.integers(0, 40, (40, 3, 1024))
        records = np.concatenate([labels[:, None], shades.astype(np.uint8).reshape(40, -1)], axis=1)
        (folder / name).write_bytes(records.tobytes())
    monkeypatch.setenv("PACTRAIN_DATA", str(tmp_path))
    monkeypatch.setattr(risks, "CHUNK_DRAWS", 20)  # the certificates are not looked at here
    images.digest_of.cache_clear()
    images.images_of.cache_clear()
    return tmp_path


class Here:
    """Carries out runs in this process, keeping what the store has."""

    def __init__(self, path: Path) -> None:
        self.store, self.done = Store(path / "results.sqlite"), list[Run]()

    def __call__(self, runs: Sequence[Run]) -> list[Row]:
        for run in runs:
            if self.store.get(run) is None:
                self.store.write(run, execute(run.config))
                self.done.append(run)
        rows = self.store.of(runs)
        return [rows[run.identity] for run in runs]


def small(table: Table) -> Table:
    return table.changed({"width": 1 / 16, "images": 32, "test_images": 40, "epochs": 1, "batch_size": 16})


def test_every_table_and_figure_is_declared_at_both_scales() -> None:
    assert set(IMAGES) == {*TABLES, *FIGURES} == NAMES
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


def test_cells_put_their_settings_together() -> None:
    table = TABLES["table-bounds"]("paper")
    bbb, authors = (table.cells()["cnn13", column] for column in ("bbb", "layer, authors"))
    assert (bbb.method, bbb.settings["rules"]) == ("pac_bayes", {"bbb_penalty": 0.1})
    assert authors.settings["rules"] == {"lr": 1e-4, "std_lr": 1e-4}
    assert (authors.settings["epochs"], authors.settings["stage2"]) == (500, 200)
    assert authors.settings["network"] == "cnn13"
    group = TABLES["table-predictors"]("cpu").cells()["vgg13:norm=group", "mean"]
    assert group.settings["network"] == "vgg13:width=0.125,norm=group"
    assert len(TABLES["table-cnn"]("paper").cells()["SGD", "vgg13 cifar10"].tried) == 144


@pytest.mark.parametrize(("scale", "epochs"), [("cpu", 100), ("paper", 100), ("cpu", 2)])
def test_other_epochs_keep_the_parts_of_the_stages(scale: Scale, epochs: int) -> None:
    cells = TABLES["table-stages"](scale).changed({"epochs": epochs}).cells()
    found = {row: (c.settings["epochs"], c.settings.get("stage2")) for (row, _), c in cells.items()}
    ten = max(1, epochs // 50)
    second = round(0.4 * epochs)
    assert found == {
        "no stage 1": (round(1.4 * epochs), None),
        "ten epochs of stage 1": (ten, second),
        "no stage 2": (epochs, 0),
        "both stages": (epochs, second),
    }


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


def test_k_is_scanned_std_by_std(cifar: Path) -> None:
    here = Here(cifar)
    scan = Scan("cnn9:width=.0625", "cifar10", images=40, draws=2, points=4)
    ks = carry_out_scan(scan, here)
    assert len(here.done) == 4
    assert ks.k.shape == (4, 40)
    assert (np.diff(ks.k, axis=0) >= 0).all()  # a wider prior never looks cheaper
    assert (np.diff(ks.k, axis=1) <= 1e-15).all()  # a larger γ1 leaves out part of the supremum
    assert (ks.k[:, 0] <= ks.lemma).all()
    assert ks.planes["CGF"] >= ks.near(ks.knee)["K"]
    for name, drawing in (("k.png", draw.draw_k), ("upper.png", draw.draw_k_upper)):
        draw.write_figure(drawing(ks), cifar / name)
        assert (cifar / name).stat().st_size > 5000
    assert len(json.loads(json.dumps(ks.to_dict()))["K"]) == 4


def test_processes_of_torchrun_share_a_plan_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, call = tmp_path / "results.sqlite", ("square", 4, 0.0, str(tmp_path))
    script = "from tests.recipes import plan; from pactrain.experiments.shared_out import carry_out_shared as shared; "
    script += f"print(len(shared(plan{call!r}, {str(path)!r})))"
    environment = os.environ | {"RANK": "1", "WORLD_SIZE": "2"}
    other = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    rows = carry_out_shared(plan(*call), path)
    assert [row.metrics["square"] for row in rows if row.metrics] == [0, 1, 4, 9]
    assert other.communicate()[0] == "4\n"
    by = [(tmp_path / f"{i}").read_text() for i in range(4)]
    assert by[0] == by[2] == f"{os.getpid()}\n"  # each run once, half of them here
    assert by[1] == by[3] == f"{other.pid}\n"
    assert carry_out_shared(plan(*call), path) == rows
