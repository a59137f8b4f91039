"""Functions that the runner's tests have carried out by real workers; as a program, a driver that may be killed.

python -m tests.experiments.recipes STORE FUNCTION COUNT SECONDS LOG BACKEND
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pactrain.experiments import Run, carry_out


def square(*, number: float, seed: int, seconds: float = 0.0, log: str | None = None) -> dict[str, Any]:
    """A short run that leaves a line in a file of its own each time it is carried out."""
    if log is not None:
        with (Path(log) / f"{number}").open("a") as file:
            file.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return {"square": number * number, "seed": seed}


def fails_on_tens(*, number: int, seed: int, seconds: float = 0.0, log: str | None = None) -> dict[str, Any]:
    """One in ten fails."""
    found = square(number=number, seed=seed, seconds=seconds, log=log)
    if number % 10 == 0:
        raise ValueError(f"{number} is a multiple of ten")
    return found


def kept(*, seed: int, fail: bool, folder: str) -> dict[str, Any]:
    """A run that counts its starts in its folder, and may fail."""
    file = Path(folder) / "start"
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as marks:
        marks.write("1")
    if fail:
        raise ValueError("stopped")
    return {"starts": len(file.read_text())}


def dies(*, seed: int) -> dict[str, Any]:
    """A run that takes its worker with it, every time."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def threads(*, seed: int) -> dict[str, Any]:
    """How many threads torch uses in a worker."""
    import torch

    return {"threads": torch.get_num_threads()}


def not_a_dict(*, seed: int) -> Any:
    """A recipe that does not keep to the rules."""
    return seed


def not_json(*, seed: int) -> Any:
    """A recipe whose metrics cannot be stored."""
    return {"value": object()}


def plan(function: str, count: int, seconds: float, log: str) -> list[Run]:
    """So many runs of a function above."""
    shared = {"seconds": seconds, "log": log}
    return [Run(f"tests.experiments.recipes:{function}", {"number": i, **shared}, seed=i) for i in range(count)]


if __name__ == "__main__":
    store, function, count, seconds, log, backend = sys.argv[1:]
    carry_out(plan(function, int(count), float(seconds), log), store, backend=backend, workers=2)  # type: ignore[arg-type]
