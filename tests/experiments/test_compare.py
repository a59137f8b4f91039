"""The comparison with grid-searched plain training, small, with real workers."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pactrain.baselines.grid_search import grid
from pactrain.baselines.plain_training import Settings, rank, train
from pactrain.experiments.compare import GRIDS, OURS, Comparison, Problem, compare, spread, trial
from pactrain.experiments.store import Store
from pactrain.problem.scores import evaluate
from pactrain.runtime.errors import DataError, PactrainError

GRID = {"Adam": grid(Settings("adam", steps=40), lr=(1e-5, 3e-2), noise=(0.0, 0.01))}


def line(path: Path, n: int = 80) -> Path:
    g = np.random.default_rng(0)
    x = g.normal(size=(n, 2))
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": 100 + 30 * x[:, 0] + g.normal(size=n)}).to_csv(path, index=False)
    return path


def small(problem: Problem, store: Path, **more: Any) -> Comparison:
    return compare(problem, store, grids=GRID, budget="10 epochs", workers=2, **{"seeds": 2} | more)


def test_settings_are_chosen_on_validation_rows_and_trained_again_on_everything(tmp_path: Path) -> None:
    problem = Problem(str(line(tmp_path / "t.csv")), model="mlp:8", target="y")
    found = small(problem, tmp_path / "s.sqlite")
    ours, adam = found.methods
    assert (found.score, found.seeds, ours.name, adam.name) == ("rmse", (0, 1), OURS, "Adam")
    assert (ours.trainings, adam.trainings) == (1, 5)
    assert adam.difference is not None
    pairs = zip(ours.score.values, adam.score.values, strict=True)
    assert adam.difference.values == pytest.approx([a - b for a, b in pairs])

    rows = Store(tmp_path / "s.sqlite").rows()
    assert len(rows) == 2 + 2 * 5
    for seed in (0, 1):
        trials = [r for r in rows if r.kind == "Adam search" and r.seed == seed]
        assert all(r.metrics is not None and set(r.metrics) == {"validation", "best_step"} for r in trials)
        best = max(trials, key=lambda r: rank((r.metrics or {})["validation"]))
        assert best.metrics is not None
        chosen = Settings(**best.config["settings"]["settings"])
        assert adam.chosen[seed] == dataclasses.asdict(chosen) | {"steps": max(1, best.metrics["best_step"])}

        task = problem.load(seed)
        model, loss = problem.network(task, seed), problem.loss(task)
        stop_at = adam.chosen[seed]["steps"]
        train(model, (task.x_train, task.y_train), chosen, loss=loss, stop_at=stop_at, seed=seed)
        test = [tuple(torch.as_tensor(a) for a in (task.x_test, task.y_test))]
        assert evaluate(model, test, loss)["rmse"] == pytest.approx(adam.score.values[seed], rel=1e-5)


def test_a_comparison_goes_on_from_its_store_and_notices_other_data(tmp_path: Path) -> None:
    problem, store = Problem(str(line(tmp_path / "t.csv")), model="linear", target="y"), tmp_path / "s.sqlite"
    first = small(problem, store, seeds=1)
    rows = Store(store).rows()
    assert first.methods[0].score.half_width is None
    more = small(problem, store)
    assert Store(store).rows()[: len(rows)] == rows
    assert more.methods[1].score.values[0] == first.methods[1].score.values[0]
    before = len(Store(store).rows())
    line(tmp_path / "t.csv", n=70)
    small(problem, store)
    assert len(Store(store).rows()) > before


def test_settings_that_explode_are_passed_over(tmp_path: Path) -> None:
    problem = Problem(str(line(tmp_path / "t.csv")), model="linear", target="y")
    wild, tame = Settings("sgd", 1e6, steps=40), Settings("sgd", 0.01, steps=40)
    found = trial(problem=dataclasses.asdict(problem), settings=dataclasses.asdict(wild), seed=0)
    assert found == {"validation": None, "best_step": 0}
    both = compare(problem, tmp_path / "s.sqlite", seeds=1, grids={"SGD": [wild, tame]}, budget="5 epochs", workers=2)
    assert both.methods[1].chosen[0]["lr"] == 0.01
    with pytest.raises(PactrainError, match="no training of the search for SGD, seed 0, came to an end"):
        compare(problem, tmp_path / "s.sqlite", seeds=1, grids={"SGD": [wild]}, budget="5 epochs", workers=2)


def test_a_failing_training_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\nclass Net(nn.Linear):\n    def forward(self, x):\n"
        "        raise RuntimeError('the cat sat on it')\ndef net(i, o):\n    return Net(i, o)\n"
    )
    problem = Problem(str(line(tmp_path / "t.csv")), model=f"{tmp_path / 'net.py'}:net", target="y")
    with pytest.raises(PactrainError, match="the cat sat on it"):
        small(problem, tmp_path / "s.sqlite", seeds=1)
    assert all("the cat sat on it" in (row.error or "") for row in Store(tmp_path / "s.sqlite").rows())


def test_spread_is_students() -> None:
    values = [97.0, 98.0, 96.5, 97.5]
    found = spread(values)
    assert found.mean == 97.25
    deviation = math.sqrt(sum((v - 97.25) ** 2 for v in values) / 3)
    assert found.half_width == pytest.approx(3.182446 * deviation / 2, rel=1e-6)  # t of 3 degrees, from a table
    assert spread([1.0]).half_width is None


def test_the_grids_search_every_regulariser() -> None:
    for name, candidates in GRIDS.items():
        assert {c.optimizer for c in candidates} == {name.lower()}
        assert len(set(candidates)) == 24
        for field in ("lr", "weight_decay", "noise", "dropout"):
            assert len({getattr(c, field) for c in candidates}) > 1


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs test rows"):
        compare(Problem("iris", test_fraction=0.0), tmp_path / "s.sqlite")
    with pytest.raises(PactrainError, match="at least one"):
        compare(Problem("iris"), tmp_path / "s.sqlite", seeds=0)
