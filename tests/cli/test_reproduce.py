"""`pactrain reproduce`: the list of recipes, and a table that is killed and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pactrain.experiments import Store
from tests.data.citation import write_graph


def start(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "PACTRAIN_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "pactrain", "reproduce", *words]
    return subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(tmp_path: Path, *words: str) -> str:
    process = start(tmp_path, *words)
    out, error = process.communicate()
    assert process.returncode == 0, out + error
    return out


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


def test_the_list_of_recipes(tmp_path: Path) -> None:
    found = json.loads(finish(tmp_path, "list", "--json", "-"))
    assert {"table-gnn", "figure-gnn", "table-glue"} < set(found)
    assert found["table-cnn"]["paper"]["gpu_hours"] > found["table-cnn"]["cpu"]["minutes_on_two_cores"] / 60
