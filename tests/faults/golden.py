"""Six small runs whose bits are pinned: the risk and the bound of every epoch, and a digest of the final weights.

python -m tests.faults.golden            compares the runs with those that are pinned for this platform
python -m tests.faults.golden --pin      pins them anew: after a change that is meant to change results, or on a new platform

What is not deterministic, and so is not pinned: anything that follows from a clock (a budget in seconds, `seconds` in records
and metrics, the number of threads that is chosen by timing), several threads (sums are rounded by how they are shared out, so
one is used here), and other processors or versions of torch, which have pins of their own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pactrain
from pactrain.runs import folder
from pactrain.runtime.events import Event
from pactrain.runtime.files import digest_state
from pactrain.runtime.versions import machine
from tests.data.citation import write_graph
from tests.zoo import build, rows

PINS = Path(__file__).with_name("golden.json")
EPOCHS = "12 epochs"


def platform() -> str:
    """What bits depend on."""
    return f"{machine()}, torch {torch.__version__}"


def curve(result: pactrain.Result) -> dict[str, Any]:
    """What is pinned of a run, in hexadecimal: every bit counts."""
    weights = digest_state(dict(result.model.state_dict()), {})
    return {name: [float(r[name]).hex() for r in result.history] for name in ("risk", "bound")} | {"weights": weights}


def table() -> dict[str, Any]:
    """Rows of numbers."""
    return curve(pactrain.fit(build("mlp"), rows(200), budget=EPOCHS))


def image() -> dict[str, Any]:
    """Small grey images, flipped and cropped."""
    from pactrain.models.image import image_model

    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 64, generator=g), torch.randint(0, 2, (60,), generator=g)
    data = pactrain.augmented((x, y), "flip_crop", shape=(1, 8, 8))
    return curve(pactrain.fit(image_model("cnn9:width=.0625", 64, 2, seed=0), data, budget=EPOCHS))


def graph() -> dict[str, Any]:
    """Nodes of a graph."""
    from pactrain.data.graphs import read_graph
    from pactrain.models.graph import graph_model

    with tempfile.TemporaryDirectory() as place:
        data = read_graph(write_graph(Path(place) / "g.npz"))
    return curve(pactrain.fit(graph_model("gcn", 12, 3), data, budget=EPOCHS))


def text() -> dict[str, Any]:
    """Tokens through an embedding."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(20, 8), torch.nn.Linear(8, 2))
    words = torch.from_numpy(np.random.default_rng(0).integers(0, 20, (80, 6)))
    return curve(pactrain.fit(model, (words, (words < 5).any(1).long()), budget=EPOCHS))


def resumed() -> dict[str, Any]:
    """The table's run, cut off in the middle."""

    class Cut(Exception):
        pass

    def cut(event: Event) -> None:
        if event.phase == "train" and event.done == 5:
            raise Cut

    before, folder.CHECKPOINT_SECONDS = folder.CHECKPOINT_SECONDS, 0.0
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "run"
        try:
            pactrain.fit(build("mlp"), rows(200), budget=EPOCHS, out=out, callbacks=[cut])
        except Cut:
            return curve(pactrain.fit(build("mlp"), rows(200), budget=EPOCHS, out=out, resume=True))
        finally:
            folder.CHECKPOINT_SECONDS = before
    raise AssertionError("the run was not cut off")


def two_processes() -> dict[str, Any]:
    """The table's run, shared out by torchrun."""
    with tempfile.TemporaryDirectory() as place:
        words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
        words += [
            "-m",
            "pactrain",
            "train",
            "--data",
            "iris",
            "--model",
            "mlp:8",
            "--budget",
            EPOCHS,
            "--out",
            f"{place}/run",
        ]
        subprocess.run(words, check=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        lines = [json.loads(line) for line in (Path(place) / "run" / "history.jsonl").read_text().splitlines()]
        weights = json.loads((Path(place) / "run" / "metrics.json").read_text())["weights"]["model.safetensors"]
    return {name: [float(r[name]).hex() for r in lines] for name in ("risk", "bound")} | {"weights": weights}


RUNS: dict[str, Callable[[], dict[str, Any]]] = {
    "table": table, "image": image, "graph": graph, "text": text, "resumed": resumed, "two processes": two_processes,
}  # fmt: skip


def made(name: str) -> dict[str, Any]:
    """One of the runs, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return RUNS[name]()
    finally:
        torch.set_num_threads(threads)


def pinned() -> dict[str, Any]:
    """The pins of this platform, by run; empty if it has none."""
    found: dict[str, Any] = json.loads(PINS.read_text()).get(platform(), {}) if PINS.exists() else {}
    return found


def main() -> None:
    """Compare, or pin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pin", action="store_true")
    options = parser.parse_args()
    before, now = pinned(), {name: made(name) for name in RUNS}
    for name, found in now.items():
        print(
            f"{name}: {'as pinned' if before.get(name) == found else 'not pinned' if name not in before else 'DIFFERS'}"
        )
    if options.pin:
        others = json.loads(PINS.read_text()) if PINS.exists() else {}
        PINS.write_text(json.dumps(others | {platform(): now}, indent=1) + "\n")
    raise SystemExit(0 if options.pin or now == before else 1)


if __name__ == "__main__":
    main()
