"""Backends whose workers are really killed, options that cannot be meant, extras that are absent."""

import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from pactrain.experiments import Run, Store, carry_out
from pactrain.runtime.errors import PactrainError
from tests.experiments.processes import errors, executions, start, wait_until
from tests.experiments.recipes import plan


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


BACKENDS = [
    pytest.param("loky"),
    pytest.param("ray", marks=pytest.mark.skipif(not installed("ray"), reason="ray is not installed")),
    pytest.param("dask", marks=pytest.mark.skipif(not installed("distributed"), reason="dask is not installed")),
]


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


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_a_driver_killed_in_mid_plan_goes_on_where_it_was(backend: str, tmp_path: Path) -> None:
    path, log = tmp_path / "s.sqlite", tmp_path / "log"
    store, process = Store(path), start(tmp_path / "s.sqlite", "square", 6, 1.0, tmp_path / "log", backend)
    wait_until(lambda: len(store.rows()) >= 2, process, path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {str(row.config["settings"]["number"]): executions(log) for row in store.rows()}
    again = start(path, "square", 6, 1.0, log, backend)
    assert again.wait() == 0, errors(path).read_text()
    assert sorted(row.metrics["square"] for row in store.rows() if row.metrics) == [i * i for i in range(6)]
    assert all(executions(log)[number] == before[number] for number, before in kept.items())  # never carried out again


def test_a_run_that_always_kills_its_worker_fails_and_the_others_finish(tmp_path: Path) -> None:
    todo = [Run("tests.experiments.recipes:dies"), *plan("square", 8, 0.0, str(tmp_path))]
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
