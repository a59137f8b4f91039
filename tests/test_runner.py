"""Plans, the store and the runner, with real processes that are really killed."""

import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pactrain.experiments import Outcome, Run, Store, carry_out
from pactrain.experiments.plan import execute
from pactrain.experiments.runner import Tally
from pactrain.runtime.errors import PactrainError, RunError
from pactrain.runtime.events import Event
from tests.recipes import plan

ROOT = Path(__file__).parents[1]


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


BACKENDS = [
    pytest.param("loky"),
    pytest.param("ray", marks=pytest.mark.skipif(not installed("ray"), reason="ray is not installed")),
    pytest.param("dask", marks=pytest.mark.skipif(not installed("distributed"), reason="dask is not installed")),
]


def start(store: Path, function: str, count: int, seconds: float, log: Path, backend: str) -> subprocess.Popen[bytes]:
    """A driver in a process of its own."""
    log.mkdir(exist_ok=True)
    words = [store, function, count, seconds, log, backend]
    command = [sys.executable, "-m", "tests.recipes", *map(str, words)]
    with errors(store).open("w") as file:
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=file)


def errors(store: Path) -> Path:
    """Where a driver complains."""
    return store.with_suffix(".errors")


def executions(log: Path) -> dict[str, int]:
    return {file.name: len(file.read_text().splitlines()) for file in log.iterdir()}


def wait_until(condition: Any, process: subprocess.Popen[bytes], store: Path) -> None:
    while not condition():
        assert process.poll() is None, errors(store).read_text()
        time.sleep(0.02)


# -- plans and the store ------------------------------------------------------------------------------------------------


def test_an_identity_depends_on_everything_that_determines_the_run_and_on_nothing_else() -> None:
    run = Run("a:b", {"x": 1, "y": [0.1, 2]}, seed=3, data="digest", kind="quick")
    assert run.identity == "6135a97706b80930579e63de5cc5f8fc"  # of another session: it must never change
    assert run.identity == Run("a:b", {"y": (0.1, 2), "x": 1}, seed=3, data="digest").identity
    others = [
        Run("a:c", run.settings, 3, "digest"),
        Run("a:b", {"x": 1}, 3, "digest"),
        Run("a:b", run.settings, 4, "digest"),
        Run("a:b", run.settings, 3, "other"),
    ]
    assert len({run.identity, *(o.identity for o in others)}) == 5


@pytest.mark.parametrize(
    ("function", "settings"), [("nothing", {}), ("a:b", {"x": object()}), ("a:b", {"x": float("nan")})]
)
def test_a_run_that_could_not_be_stored_is_refused(function: str, settings: dict[str, Any]) -> None:
    with pytest.raises(PactrainError, match=r"write package\.module:function|not JSON"):
        Run(function, settings)


def test_a_result_replaces_a_failure_and_is_never_replaced(tmp_path: Path) -> None:
    store, run = Store(tmp_path / "below" / "s.sqlite"), Run("a:b")
    assert store.get(run) is None
    store.write(run, Outcome(None, "Traceback …", 1.0))
    row = store.get(run)
    assert row is not None
    assert (row.metrics, row.error) == (None, "Traceback …")
    for metrics in ({"score": 1.5}, {"score": 2.5}):
        store.write(run, Outcome(metrics, None, 2.0, {"python": "3"}))
    store.write(run, Outcome(None, "later", 1.0))
    (row,) = Store(tmp_path / "below" / "s.sqlite").rows()
    assert (row.metrics, row.error, row.seconds, row.versions) == ({"score": 1.5}, None, 2.0, {"python": "3"})
    assert row.config == {"function": "a:b", "settings": {}, "seed": 0, "data": ""}


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("something else entirely\n" * 100)
    with pytest.raises(RunError, match="cannot be used as a store"):
        Store(tmp_path / "s.sqlite")
    assert (tmp_path / "s.sqlite").read_text().startswith("something else")


# -- one run ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("tests.recipes:absent", "has no attribute 'absent'"),
        ("tests.nowhere:square", "No module named 'tests.nowhere'"),
        ("tests.recipes:not_a_dict", "not a dict of metrics"),
        ("tests.recipes:not_json", "not JSON serializable"),
        ("tests.recipes:square", "missing 1 required keyword-only argument"),
    ],
)
def test_whatever_goes_wrong_in_a_run_is_its_error(function: str, words: str) -> None:
    outcome = execute(Run(function).config)
    assert outcome.metrics is None
    assert outcome.error is not None
    assert "Traceback" in outcome.error
    assert words in outcome.error


# -- plans carried out --------------------------------------------------------------------------------------------------


def test_results_failures_progress_and_a_second_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    todo = [*plan("fails_on_tens", 6, 0.0, str(log)), Run("tests.recipes:threads")]
    seen: list[Event] = []
    rows = carry_out(todo, tmp_path / "s.sqlite", workers=2, progress=seen.append)
    assert [r.metrics["square"] if r.metrics else None for r in rows[:-1]] == [None, 1, 4, 9, 16, 25]
    assert "ValueError: 0 is a multiple of ten" in (rows[0].error or "")
    assert rows[-1].metrics == {"threads": 1}
    assert rows[1].versions["python"]
    assert [e.done for e in seen] == list(range(8))
    assert {e.total for e in seen} == {7}
    assert seen[0].values["left"] is None
    assert (seen[-1].values["left"], seen[-1].values["failed"]) == (0.0, 1)
    again = carry_out(todo, tmp_path / "s.sqlite", workers=2)
    assert again[1:] == rows[1:]
    carry_out(todo, tmp_path / "s.sqlite", workers=2, retry_failed=False)
    expected = dict.fromkeys("12345", 1) | {"0": 2}
    assert executions(log) == expected  # the failure, and only it, was tried again, and once


def test_the_estimate_goes_by_kinds() -> None:
    slow, quick = (Run("a:b", {"i": i, "kind": k}, kind=k) for i, k in enumerate(("slow", "quick")))
    more = [Run("a:b", {"i": i, "of": k}, kind=k) for i in range(10) for k in ("slow", "quick")]
    tally = Tally(22, {r.identity: r for r in (slow, quick, *more)}, 2, [])
    assert tally.event().values["left"] is None
    assert tally.event(slow, Outcome({}, None, 100.0)).values["left"] == pytest.approx(21 * 100 / 2)
    event = tally.event(quick, Outcome({}, None, 2.0))
    assert event.values["left"] == pytest.approx((10 * 100 + 10 * 2) / 2)
    assert (event.done, event.total) == (2, 22)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["square", "fails_on_tens"])
def test_killed_three_times_a_plan_of_200_loses_nothing_and_repeats_nothing(function: str, tmp_path: Path) -> None:
    path, log = tmp_path / "s.sqlite", tmp_path / "log"
    store = Store(path)
    wanted = {run.identity: run for run in plan(function, 200, 0.02, str(log))}
    kept: dict[str, int] = {}  # how often each run was carried out that had a result when the driver was killed
    for kill in range(1, 4):
        process = start(path, function, 200, 0.02, log, "loky")
        wait_until(lambda enough=40 * kill: len(store.rows()) >= enough, process, path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        stored = [row for row in store.rows() if row.error is None]
        assert len(stored) < 200
        counts = executions(log)
        for row in stored:
            kept.setdefault(row.identity, counts[str(row.config["settings"]["number"])])
    assert start(path, function, 200, 0.02, log, "loky").wait() == 0
    rows = store.rows()
    assert len(rows) == 200
    assert {row.identity for row in rows} == set(wanted)
    for row in rows:
        number = row.config["settings"]["number"]
        if function == "fails_on_tens" and number % 10 == 0:
            assert f"ValueError: {number} is a multiple" in (row.error or "")
        else:
            assert row.metrics == {"square": number**2, "seed": number}
    counts = executions(log)
    assert kept
    for identity, before in kept.items():
        assert counts[str(wanted[identity].settings["number"])] == before  # never carried out again
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_worker_killed_in_mid_run_loses_nothing(backend: str, tmp_path: Path) -> None:
    path, log = tmp_path / "s.sqlite", tmp_path / "log"
    process = start(path, "square", 6, 1.0, log, backend)
    wait_until(lambda: any(file.read_text() for file in log.iterdir()), process, path)
    victim = next(file for file in log.iterdir() if file.read_text())
    os.kill(int(victim.read_text().split()[0]), signal.SIGKILL)
    assert process.wait() == 0, errors(path).read_text()
    rows = Store(path).rows()
    assert [(row.error, row.metrics) for row in sorted(rows, key=lambda r: r.seed)] == [
        (None, {"square": i * i, "seed": i}) for i in range(6)
    ]
    assert executions(log)[victim.name] == 2


def test_a_run_that_always_kills_its_worker_fails_and_the_others_finish(tmp_path: Path) -> None:
    todo = [Run("tests.recipes:dies"), *plan("square", 8, 0.0, str(tmp_path))]
    rows = carry_out(todo, tmp_path / "s.sqlite", workers=2)
    assert "its worker died 3 times, at last alone" in (rows[0].error or "")
    assert all(row.error is None for row in rows[1:])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "threads"}, "use loky, ray or dask"),
        ({"workers": 0}, "at least one"),
        ({"address": "tcp://somewhere:1"}, "this machine only"),
        ({"backend": "ray", "address": "auto", "workers": 3}, "the cluster says"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(PactrainError, match=words):
        carry_out([Run("a:b")], tmp_path / "s.sqlite", **options)


@pytest.mark.parametrize(("backend", "module"), [("ray", "ray"), ("dask", "distributed")])
def test_an_absent_extra_is_named_with_its_pip_line(
    backend: Any, module: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # what Python itself does to make an import fail
    with pytest.raises(PactrainError, match=rf"pip install 'pactrain\[{backend}\]'"):
        carry_out([Run("a:b")], tmp_path / "s.sqlite", backend=backend)
