"""A run folder belongs to one process while its run is going, and to nobody once that process is dead."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pactrain
from pactrain.runtime.errors import RunError
from tests.zoo import build, rows

GOING = """
import sys
import pactrain
from tests.zoo import build, rows

def wait(event):
    if event.phase == "train" and event.done == 2:
        print("going", flush=True)
        sys.stdin.read()

pactrain.fit(build("mlp"), rows(), budget="4 epochs", out=sys.argv[1], callbacks=[wait])
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def going(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of a run in `tmp_path / "run"`."""
    command = [sys.executable, "-c", GOING, str(tmp_path / "run")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        yield process
        process.kill()


def test_a_run_that_is_going_on_is_left_alone(going: subprocess.Popen[str], tmp_path: Path) -> None:
    files = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    for resume in (True, False):
        with pytest.raises(RunError, match="still going on"):
            pactrain.fit(build("mlp"), rows(), budget="4 epochs", out=tmp_path / "run", resume=resume)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == files
    going.communicate()  # the end of its input lets it go on
    assert going.returncode == 0
    with pytest.raises(RunError, match="complete"):
        pactrain.fit(build("mlp"), rows(), budget="4 epochs", out=tmp_path / "run", resume=True)


def test_a_killed_process_frees_its_folder(going: subprocess.Popen[str], tmp_path: Path) -> None:
    going.kill()
    going.wait()
    with pytest.raises(RunError, match="not empty"):
        pactrain.fit(build("mlp"), rows(), budget="4 epochs", out=tmp_path / "run")
    pactrain.fit(build("mlp"), rows(), budget="4 epochs", out=tmp_path / "run", resume=True)
    pactrain.fit(build("mlp"), rows(), budget="4 epochs", out=tmp_path / "whole")
    assert {p.name for p in (tmp_path / "run").iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()}
    for file in ("model.safetensors", "posterior.safetensors", "certificate.json", "config.json"):
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
