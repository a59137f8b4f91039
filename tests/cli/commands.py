"""Commands run in processes of their own, and a table for them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ENV = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "160"}


def run(*words: Any, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `pactrain …` and check its exit code."""
    command = [sys.executable, "-m", "pactrain", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def flowers(path: Path, n: int = 90) -> Path:
    """A CSV of numbers, categories and gaps with a target that can be learnt."""
    g = np.random.default_rng(0)
    kind = g.choice(["iris", "rose", "tulip"], n)
    table = pd.DataFrame({"height": g.normal(0, 1, n) + 3 * (kind == "rose"), "soil": g.choice(["clay", "sand"], n)})
    table["width"] = g.normal(0, 1, n) + 3 * (kind == "tulip")
    table.loc[5, "height"] = np.nan
    table["kind"] = kind
    table.to_csv(path, index=False)
    return path
