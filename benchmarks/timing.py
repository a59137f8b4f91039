"""Timing that can be trusted on a noisy machine: interleaved rounds, ratios within a round, medians."""

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

BUSY = 0.1
"""Share of the machine that others may use before a warning is printed."""


@dataclass(frozen=True)
class Ratio:
    """The median of a ratio over rounds, and its quartiles."""

    value: float
    low: float
    high: float


def interleaved(
    methods: dict[str, Callable[[], Any]], *, rounds: int, steps: int, warm_up: int = 3
) -> dict[str, list[float]]:
    """Seconds a step of each method in each round; in a round every method runs once, in random order."""
    order, shuffle = list(methods), random.Random(0)
    for step in methods.values():
        for _ in range(warm_up):
            step()
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        shuffle.shuffle(order)
        for name in order:
            step = methods[name]
            started = time.perf_counter()
            for _ in range(steps):
                step()
            seconds[name].append((time.perf_counter() - started) / steps)
    return seconds


def ratio(mine: list[float], base: list[float]) -> Ratio:
    """Of two lists of seconds, round by round."""
    ratios = [a / b for a, b in zip(mine, base, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    return Ratio(statistics.median(ratios), low, high)


def _idle_and_total() -> tuple[float, float]:
    fields = [float(f) for f in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return fields[3] + fields[4], sum(fields[:8])


def warn_if_busy() -> None:
    """Say so on standard error when other processes are at work, for then times mean little."""
    if not Path("/proc/stat").exists():
        return
    idle, total = _idle_and_total()
    time.sleep(1.0)
    idle_after, total_after = _idle_and_total()
    used = 1 - (idle_after - idle) / max(1.0, total_after - total)
    if used > BUSY:
        print(
            f"warning: other processes use {100 * used:.0f} % of this machine; wait until it is quiet", file=sys.stderr
        )


def machine() -> str:
    """What the numbers were measured on."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        name = next(
            (line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), name
        )
    return f"{name}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"


def options(description: str | None, **defaults: int) -> argparse.Namespace:
    """The options every script has: how many rounds and steps, and where to write rows as JSON."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    return parser.parse_args()


def show(rows: list[dict[str, Any]], path: Path | None) -> None:
    """The rows as a Markdown table, and as JSON where asked for."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for row in rows:
        print("| " + " | ".join(_shown(row.get(c, "")) for c in columns) + " |")
    print(f"\n{machine()}")
    if path:
        path.write_text(json.dumps(rows, indent=1) + "\n")


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
