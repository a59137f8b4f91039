"""Processes of torchrun share a plan."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pactrain.experiments.torchrun import carry_out_shared
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
