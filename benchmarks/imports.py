"""Claim: importing pactrain, with all that training needs, costs at most a tenth more than importing torch."""

import resource
import statistics
import subprocess
import sys

ROUNDS = 5
TORCH = "import torch"
OURS = "import torch, pactrain; pactrain.fit, pactrain.certify, pactrain.Posterior, pactrain.bounds.Unbounded"


def processor_seconds(code: str) -> float:
    """Processor time of a fresh interpreter that runs `code`; unlike the clock it does not count what others do meanwhile."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the medians; the first round only warms the disk's cache."""
    rounds = [[processor_seconds(code) for code in ("pass", TORCH, OURS)] for _ in range(ROUNDS + 1)][1:]
    nothing, torch, ours = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median((ours - none) / (torch - none) for none, torch, ours in rounds)
    print(
        f"python {nothing:.2f} s, with torch {torch:.2f} s, with torch and pactrain {ours:.2f} s: {ratio:.2f} times torch"
    )


if __name__ == "__main__":
    main()
