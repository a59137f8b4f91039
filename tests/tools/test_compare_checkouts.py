"""The comparer of two checkouts, in real processes: a checkout is like itself, and a patched copy is not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICK = "^(bound kl|error: a delta of 0)$"


def compare(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run the tool."""
    command = [sys.executable, str(ROOT / "tools" / "compare_checkouts.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def patched(folder: Path, old: str, new: str) -> Path:
    """A copy of the sources with one change, in whichever file has the text."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (file,) = (p for p in (folder / "src").rglob("*.py") if old in p.read_text())
    file.write_text(file.read_text().replace(old, new))
    return folder


@pytest.mark.slow
def test_a_checkout_is_like_itself(tmp_path: Path) -> None:
    done = compare(ROOT, ROOT, "--only", QUICK, "--keep", tmp_path / "kept")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(": same")[0] for line in lines[:-1]] == ["bound kl", "error: a delta of 0"]
    assert lines[-1] == "2 cases, 2 same, 0 different"
    assert (tmp_path / "kept" / "2" / "results" / "bound-kl.json").exists()


@pytest.mark.slow
def test_a_difference_is_seen(tmp_path: Path) -> None:
    other = patched(tmp_path, "1 / (self.n * in_p)", "1.0001 / (self.n * in_p)")
    done = compare(ROOT, other, "--only", QUICK)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bound kl: DIFFERS: value.weights" in done.stdout
    assert "error: a delta of 0: same" in done.stdout
    assert "2 cases, 1 same, 1 different" in done.stdout


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    assert "it has no src/pactrain" in compare(ROOT, tmp_path).stderr
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    assert "is not empty" in compare(ROOT, ROOT, "--keep", tmp_path / "kept").stderr
