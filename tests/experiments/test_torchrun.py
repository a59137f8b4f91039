"""Processes of torchrun share a plan."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pactrain.experiments import Store
from pactrain.experiments.torchrun import carry_out_shared
from tests.experiments.processes import ROOT, errors, executions, wait_until
from tests.experiments.recipes import plan


def test_processes_of_torchrun_share_a_plan_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, call = tmp_path / "results.sqlite", ("square", 4, 0.0, str(tmp_path))
    script = "from tests.experiments.recipes import plan; from pactrain.experiments.torchrun import carry_out_shared as shared; "
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


@pytest.mark.slow
def test_a_killed_rank_ends_the_job_and_its_runs_are_made_up_for(tmp_path: Path) -> None:
    path, log = tmp_path / "s.sqlite", tmp_path / "log"
    log.mkdir()
    (tmp_path / "job.py").write_text(
        "from pactrain.experiments.torchrun import carry_out_shared\nfrom tests.experiments.recipes import plan\n"
        f"carry_out_shared(plan('square', 6, 2.0, {str(log)!r}), {str(path)!r})\n"
    )
    words = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(tmp_path / "job.py"),
    ]
    store, environment = Store(path), os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with errors(path).open("w") as said:
        job = subprocess.Popen(words, env=environment, stderr=said)
    wait_until(lambda: len(store.rows()) >= 2 and len(executions(log)) > len(store.rows()), job, path)
    done = {str(row.config["settings"]["number"]) for row in store.rows()}
    going_on = next(file for file in log.iterdir() if file.name not in done)
    os.kill(int(going_on.read_text()), signal.SIGKILL)
    assert job.wait(timeout=60) != 0
    kept = {str(row.config["settings"]["number"]): executions(log) for row in store.rows()}
    again = subprocess.run(words, env=environment, check=False, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert sorted(row.metrics["square"] for row in store.rows() if row.metrics) == [i * i for i in range(6)]
    assert all(executions(log)[number] == before[number] for number, before in kept.items())
    assert executions(log)[going_on.name] == 2
