"""Small finished runs, to spoil their files."""

from pathlib import Path

import numpy as np
import pandas as pd

from tests.faults.command import command

NETWORK = """from pathlib import Path
from torch import nn

def small(inputs, outputs):
    Path(__file__).with_name("imported").write_text("")
    return nn.Sequential(nn.Linear(inputs, outputs))
"""


def make_runs(root: Path) -> Path:
    """Make the runs `iris`, `table` (of table.csv) and `code` (whose network is in net.py) in a folder."""
    g = np.random.default_rng(0)
    kind = g.choice(["a", "b"], 60)
    pd.DataFrame({"x": g.normal(size=60) + 2 * (kind == "b"), "kind": kind}).to_csv(root / "table.csv", index=False)
    (root / "net.py").write_text(NETWORK)
    for name, words in (
        ("iris", ("--data", "iris", "--model", "mlp:4")),
        ("table", ("--data", root / "table.csv", "--target", "kind", "--model", "linear")),
        ("code", ("--data", "iris", "--model", f"{root / 'net.py'}:small")),
    ):
        code, said = command("train", *words, "--budget", "2 epochs", "--out", root / name)
        assert code == 0, said
    (root / "imported").unlink()
    return root
