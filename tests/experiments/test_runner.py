"""The runner, with real processes that are really killed."""

import signal
import sqlite3
from pathlib import Path

import pytest

from pactrain.experiments import Outcome, Run, Store, carry_out
from pactrain.experiments.runner import Tally
from pactrain.runtime.events import Event
from tests.experiments.processes import executions, start, wait_until
from tests.experiments.recipes import plan


def test_results_failures_progress_and_a_second_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    todo = [*plan("fails_on_tens", 6, 0.0, str(log)), Run("tests.experiments.recipes:threads")]
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
    wanted = {run.identity: run for run in plan(function, 200, 0.1, str(log))}
    kept: dict[str, int] = {}  # how often each run was carried out that had a result when the driver was killed
    for kill in range(1, 4):
        process = start(path, function, 200, 0.1, log, "loky")
        wait_until(lambda enough=40 * kill: len(store.rows()) >= enough, process, path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        stored = [row for row in store.rows() if row.error is None]
        assert len(stored) < 200
        counts = executions(log)
        for row in stored:
            kept.setdefault(row.identity, counts[str(row.config["settings"]["number"])])
    assert start(path, function, 200, 0.1, log, "loky").wait() == 0
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


def test_a_folder_to_go_on_from_is_removed_once_there_is_a_result(tmp_path: Path) -> None:
    good, bad = (
        Run("tests.experiments.recipes:kept", {"fail": fail}, folder=str(tmp_path / str(fail)))
        for fail in (False, True)
    )
    assert good.identity == Run(good.function, good.settings).identity  # where it is kept is no part of what it is
    rows = carry_out([good, bad], tmp_path / "s.sqlite", workers=1)
    assert rows[0].metrics == {"starts": 1}
    assert not Path(good.folder).exists()
    assert (Path(bad.folder) / "start").read_text() == "1"
    carry_out([bad], tmp_path / "s.sqlite", workers=1)
    assert (Path(bad.folder) / "start").read_text() == "11"
