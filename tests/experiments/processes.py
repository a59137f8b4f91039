"""Plans carried out in processes of their own."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def start(store: Path, function: str, count: int, seconds: float, log: Path, backend: str) -> subprocess.Popen[bytes]:
    """A driver in a process of its own."""
    log.mkdir(exist_ok=True)
    words = [store, function, count, seconds, log, backend]
    command = [sys.executable, "-m", "tests.experiments.recipes", *map(str, words)]
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
