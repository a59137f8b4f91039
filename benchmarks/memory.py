"""Peak memory of `fit` and of plain Adam on the same network, each in a process of its own.

    python benchmarks/memory.py [--weights 20000000] [--json FILE]

Prints the peak resident set of both and the difference, in MB and in bytes a weight.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

METHODS = ("import", "adam", "fit")


def network(weights: int) -> "nn.Sequential":
    """Three equal linear layers with about so many weights."""
    from torch import nn

    width = round((weights / 3) ** 0.5)
    return nn.Sequential(
        *[layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())], nn.Linear(width, width)
    )


def child(method: str, weights: int) -> None:
    """Train for a few steps and print the peak resident set in bytes."""
    import torch
    from torch import nn

    import pactrain
    from pactrain.auto import AUTO

    model = network(weights)
    width = next(model.parameters()).shape[1]
    x, y = torch.randn(256, width), torch.randint(0, width, (256,))
    if method == "adam":
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(12):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[:64]), y[:64]).backward()
            optimizer.step()
    elif method == "fit":
        pactrain.fit(model, (x, y), preset=AUTO.replace(draws=2), budget="3 epochs")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def peak(method: str, weights: int) -> int:
    """Peak resident set of one method, in bytes."""
    command = [sys.executable, __file__, "--child", method, "--weights", str(weights)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=int, default=20_000_000)
    parser.add_argument("--child", choices=METHODS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.weights)
        return
    peaks = {method: peak(method, options.weights) for method in METHODS}
    rows = [
        {
            "network": f"linear, {options.weights:,} weights",
            "method": method,
            "peak_mb": round(peaks[method] / 1e6),
            "above_adam_mb": round((peaks[method] - peaks["adam"]) / 1e6),
            "above_adam_bytes_a_weight": round((peaks[method] - peaks["adam"]) / options.weights, 1),
        }
        for method in METHODS
    ]
    for row in rows:
        print(*(f"{key}={value}" for key, value in row.items()), sep="  ")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
