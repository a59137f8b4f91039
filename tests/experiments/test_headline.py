"""The headline recipe: what it trains, how it goes on, and what its table says."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from pactrain.experiments import headline as h
from pactrain.experiments.image_drawings import draw_headline, write_figure
from pactrain.experiments.image_figures import Curves
from pactrain.experiments.images import pac_bayes
from pactrain.experiments.plan import execute
from pactrain.runs.folder import is_complete, read_history
from tests.experiments.small_images import Here


def small(*methods: str, epochs: int = 2) -> Curves:
    declared = h.headline("cpu", width=1 / 16, epochs=epochs, methods=methods)
    return declared.changed({"images": 60, "test_images": 40, "batch_size": 20})


def test_all_methods_take_the_same_number_of_steps(cifar: Path) -> None:
    cells = {name: c for (name, _), c in h.headline("paper", epochs=30).table().cells().items()}
    assert {c.settings["network"] for c in cells.values()} == {"cnn9"}
    assert {(c.settings["images"], c.settings["test_images"], c.settings["batch_size"]) for c in cells.values()} == {
        (50_000, 10_000, 128)
    }
    assert (cells["auto"].settings["budget"], cells["auto"].settings["epochs"]) == ("30 epochs", None)
    assert cells["authors"].settings["epochs"] + cells["authors"].settings["stage2"] == 30
    assert {c.settings["epochs"] for c in cells.values() if c.method == "plain"} == {30}
    assert len(cells) == 3 + 2**3
    plan = h.plan_of(small("auto", "adam"), seeds=2, unfinished=cifar)
    assert len({run.identity for runs in plan.values() for run in runs}) == 4


@pytest.mark.slow
def test_curves_and_scores_come_from_the_store_and_from_unfinished_folders(cifar: Path) -> None:
    here, declared = Here(cifar), small("auto", "authors", "adam", epochs=3)
    plan = h.plan_of(declared, seeds=1, unfinished=cifar / "unfinished")
    rows = {row.identity: row for name in ("auto", "adam") for row in here(plan[name])}
    assert h.trainings_of(plan, {}).keys() == {
        "auto",
        "adam",
    }  # from their folders, which this way of running does not remove
    full = h.trainings_of(plan, rows)
    assert [r["step"] for r in full["adam"][0].history] == [r["step"] for r in full["auto"][0].history] == [3, 6, 9]
    assert full["adam"][0].test == pytest.approx(100 * (rows[plan["adam"][0].identity].metrics or {})["test"])
    lines = {line.name: line for line in h.lines_of(full, [3, 9])}
    assert lines.keys() == {"auto", "adam"}
    assert lines["auto"].steps == 9
    assert lines["auto"].at[1] == pytest.approx(100 * full["auto"][0].history[-1]["test"]["accuracy"])
    write_figure(draw_headline(full), cifar / "curves.png")
    assert (cifar / "curves.png").stat().st_size > 5000


def test_a_finished_training_whose_result_was_not_stored_is_not_repeated(cifar: Path) -> None:
    (run,) = h.plan_of(small("auto"), seeds=1, unfinished=cifar / "unfinished")["auto"]
    first = execute(run.task)
    assert first.error is None, first.error
    assert is_complete(Path(run.folder))
    before = (Path(run.folder) / "history.jsonl").stat().st_mtime_ns
    second = pac_bayes(seed=run.seed, folder=run.folder, **run.settings)
    assert (Path(run.folder) / "history.jsonl").stat().st_mtime_ns == before
    assert second["test"] == (first.metrics or {})["test"]
    assert len(second["history"]) == len(read_history(Path(run.folder) / "history.jsonl"))


def test_the_best_of_the_grid_is_the_best_of_its_finished_settings() -> None:
    def of(*scores: float | None) -> list[h.Training]:
        return [h.Training(seed, [{"step": 5, "test": {"accuracy": 0.1}}], v) for seed, v in enumerate(scores)]

    trainings = {"auto": of(99.0), "adamw a": of(70.0, 72.0), "adamw b": of(71.5, 71.5), "adamw c": of(80.0, None)}
    assert h.best_of_grid(trainings) == "adamw b"
    assert [line.name for line in h.lines_of(trainings, [5]) if line.best_of_grid] == ["adamw b"]
    assert h.lines_of(trainings, [6])[0].at == (None,)  # nothing has come so far
    assert h.best_of_grid({"auto": of(99.0)}) is None


def test_a_training_that_was_stopped_by_hand_is_no_result(cifar: Path) -> None:
    (run,) = h.plan_of(small("auto", epochs=300), seeds=1, unfinished=cifar / "unfinished")["auto"]

    def press() -> None:
        while not read_history(Path(run.folder) / "history.jsonl"):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    hand = threading.Thread(target=press)
    hand.start()
    outcome = execute(run.task)
    hand.join()
    assert outcome.metrics is None
    assert "was stopped by hand" in (outcome.error or "")
    assert 0 < len(read_history(Path(run.folder) / "history.jsonl")) < 300
