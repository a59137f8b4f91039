"""Peak memory of `fit` and of plain Adam on the same network, each in a process of its own.

    python benchmarks/memory.py [--weights 20000000] [--rounds 5] [--json FILE]

Prints the peak resident set of both in MB, and the difference in bytes a weight, median, least and largest over the rounds; and of `fit`
the peak of each of its phases (Linux only).  The leave-one-out before training counts as training, the end of training as
certificate.
"""

import argparse
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

METHODS = ("import", "adam", "fit")
EPOCHS = 3
"""Of `fit`: 12 steps, as many as of Adam; the peak comes with the first."""

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def network(weights: int) -> "nn.Sequential":
    """Three equal linear layers with about so many weights."""
    from torch import nn

    width = round((weights / 3) ** 0.5)
    return nn.Sequential(
        *[layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())], nn.Linear(width, width)
    )


def since_last() -> int:
    """The peak resident set since the last call, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    RESET.write_text("5")
    return int(line.split()[1]) * 1024


def child(method: str, weights: int) -> None:
    """Train for a few steps and print the peak resident set in bytes, of each phase and in all."""
    import torch
    from torch import nn

    import pactrain
    from pactrain.rules.presets import AUTO
    from pactrain.runtime.events import Event

    phases: dict[str, int] = {}
    model = network(weights)
    width = next(model.parameters()).shape[1]
    x, y = torch.randn(256, width), torch.randint(0, width, (256,))
    if method == "adam":
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(4 * EPOCHS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[:64]), y[:64]).backward()
            optimizer.step()
    elif method == "fit":

        def watch(event: Event) -> None:
            if RESET.exists():
                phases[event.phase] = max(phases.get(event.phase, 0), since_last())

        pactrain.fit(model, (x, y), preset=AUTO.replace(draws=2, fixed_epochs=EPOCHS), callbacks=(watch,))
        if RESET.exists():
            phases["certify"] = max(phases.get("certify", 0), since_last())
        for phase, value in phases.items():
            print(f"fit: {phase}", value, sep="\t")
    total = max([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, *phases.values()])
    print(method, total, sep="\t")


def peaks_of(method: str, weights: int) -> dict[str, int]:
    """Peak resident set of one method, in bytes, and of its phases."""
    command = [sys.executable, __file__, "--child", method, "--weights", str(weights)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: int(value) for name, value in (line.split("\t") for line in lines)}


def summary(network: str, weights: int, rounds: list[dict[str, int]]) -> list[dict[str, Any]]:
    """One row a method or phase; differences are taken within a round."""
    rows = []
    for method in rounds[0]:
        above = [(peaks[method] - peaks["adam"]) / weights for peaks in rounds]
        rows.append(
            {
                "network": network,
                "method": method,
                "peak_mb": round(statistics.median(peaks[method] for peaks in rounds) / 1e6),
                "bytes_a_weight_above_adam": statistics.median(above),
                "low": min(above),
                "high": max(above),
            }
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=METHODS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.weights)
        return
    rounds = []
    for _ in range(options.rounds):
        rounds.append({k: v for method in METHODS for k, v in peaks_of(method, options.weights).items()})
        last = rounds[-1]
        print(f"{(last['fit'] - last['adam']) / options.weights:.1f} bytes a weight above Adam", file=sys.stderr)
    rows = summary(f"linear, {options.weights:,} weights", options.weights, rounds)
    from timing import show  # brings torch, which the processes that are measured import themselves

    show(rows, options.json)


if __name__ == "__main__":
    main()
