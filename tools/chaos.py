"""Kill runs at random moments and resume them: the end must be the same, bit for bit, as that of runs nobody disturbed.

python tools/chaos.py --kills 1000 [--seed 0]        or: make chaos

Runs start from a process that has torch loaded, so that kills fall into training and not into imports.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import pactrain
from pactrain.runs import folder

EXPECTED = ("model.safetensors", "posterior.safetensors", "certificate.json", "moment.json")


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes that a linear map separates."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(200, 6, generator=g)
    return x, (x @ torch.randn(6, 3, generator=g)).argmax(1)


KINDS: dict[str, dict[str, Any]] = {
    "table": {},
    "two stages": {"preset": "authors"},
    "prior_data": {"prior_data": 0.5, "bound": "kl"},
}


def train(kind: str, out: Path) -> None:
    """A short run, or the rest of one."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    done = (out / "metrics.json").exists()
    if not done:
        pactrain.fit(model, rows(), budget="30 epochs", out=out, resume=True, **KINDS[kind])


def child_of(action: Callable[[], None]) -> int:
    """Start something in a process of its own; its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException as error:
            print(f"\n{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    return child


def disturbed(kind: str, out: Path, longest: float, chance: random.Random, kills: int) -> int:
    """Kill a run at random moments until it has ended; how many kills that took, `kills` at most."""
    count = 0
    while True:
        child = child_of(lambda: train(kind, out))
        if count < kills:
            time.sleep(chance.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            count += 1
            continue
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{kind}: a resumed run failed in {out}")
        return count


def main() -> None:
    """Kill until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder.CHECKPOINT_SECONDS = 0.0  # after every epoch, so that kills fall into writing
    torch.set_num_threads(1)
    chance, root = random.Random(options.seed), Path(tempfile.mkdtemp())
    wanted, seconds = {}, {}
    for kind in KINDS:
        train(kind, root / "first")  # loads what is loaded late
        shutil.rmtree(root / "first")
        started = time.monotonic()
        train(kind, root / kind)
        seconds[kind] = time.monotonic() - started
        wanted[kind] = [(root / kind / name).read_bytes() for name in EXPECTED]
    kills = 0
    while kills < options.kills:
        kind, out = chance.choice(list(KINDS)), root / "cut"
        kills += disturbed(kind, out, seconds[kind], chance, options.kills - kills)
        if [(out / name).read_bytes() for name in EXPECTED] != wanted[kind] or list(out.rglob("*.part")):
            raise SystemExit(f"{kind}: another end after kill {kills}, kept in {out}")
        shutil.rmtree(out)
        print(f"\r{kills} kills, every end the same", end="", flush=True)
    print()
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
