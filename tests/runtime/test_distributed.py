"""One job in two real processes: the same scan, weights and certificate as in one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

LAUNCH = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
ROOT = Path(__file__).parents[2]

SCRIPT = """
import numpy as np
from pactrain import Posterior, estimate_moment
from pactrain.runtime import distributed
from tests.zoo import build, rows
alone = estimate_moment(Posterior(build("mlp")), rows(), draws=3)
calls = []
with distributed.joined():
    shared = estimate_moment(Posterior(build("mlp")), rows(), draws=3, progress=calls.append)
    np.testing.assert_array_equal(alone.log_moments, shared.log_moments)
    np.testing.assert_array_equal(alone.means, shared.means)
    assert 0 < len(calls) < shared.measured == alone.measured, len(calls)
    print("rank", distributed.rank(), "agrees")
"""


def run(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_draws_of_the_scan_are_shared_out(tmp_path: Path) -> None:
    (tmp_path / "scan.py").write_text(SCRIPT)
    done = run(*LAUNCH, "scan.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("agrees") == 2  # the two ranks may write into each other's lines


def train(out: str, *options: str) -> tuple[str, ...]:
    return ("-m", "pactrain", "train", "--data", "wine", "--out", out, *options)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("options", [("--budget", "6 epochs"), ("--preset", "authors", "--budget", "6 epochs")])
def test_two_processes_train_the_network_that_one_trains(tmp_path: Path, options: tuple[str, ...]) -> None:
    one = run(sys.executable, *train("one", *options), cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    two = run(*LAUNCH, *train("two", *options), cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    assert two.stdout.count("two/report.html") == 1
    a, b = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for key in a:
        torch.testing.assert_close(a[key], b[key], rtol=1e-3, atol=1e-5)
    first, second = (read(tmp_path / name / "certificate.json")["statements"] for name in ("one", "two"))
    for x, y in zip(first, second, strict=True):
        assert x["value"] == pytest.approx(y["value"], rel=1e-3)
    assert len((tmp_path / "two" / "history.jsonl").read_text().splitlines()) == 6


KILLER = """
import os, signal, sys
from pactrain.runtime import distributed
from pactrain.training.trainer import Trainer
from pactrain.runs import folder
folder.CHECKPOINT_SECONDS = 0.0
step = Trainer.step
def dying(self, batch):
    if distributed.rank() == 1 and self.progress.epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch)
Trainer.step = dying
from pactrain.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_rank_that_dies_ends_the_job_and_the_run_resumes(tmp_path: Path) -> None:
    (tmp_path / "killer.py").write_text(KILLER)
    words = train("run", "--budget", "6 epochs")[2:]
    died = run(*LAUNCH, "killer.py", *words, cwd=tmp_path)
    assert died.returncode != 0
    assert "another process of this job has ended" in died.stderr
    assert not (tmp_path / "run" / "metrics.json").exists()
    resumed = run(*LAUNCH, "-m", "pactrain", *words, "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    whole = run(*LAUNCH, *train("whole", "--budget", "6 epochs"), cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    a, b = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole"))
    assert all(torch.equal(a[k], b[k]) for k in a)
