"""A small table with columns of every kind, and its CSV file."""

from pathlib import Path

import numpy as np
import pandas as pd


def frame(n: int = 60) -> pd.DataFrame:
    """Numbers with gaps, categories with gaps, a constant column, a flag."""
    g = np.random.default_rng(0)
    out = pd.DataFrame(
        {
            "size": g.normal(5, 2, n),
            "colour": g.choice(["red", "green", "blue"], n),
            "same": 1.0,
            "flag": g.random(n) < 0.5,
            "price": g.normal(100, 10, n),
            "kind": g.choice(["a", "b"], n),
        }
    )
    out.loc[3, "size"] = np.nan
    out.loc[4, "colour"] = None
    return out


def csv(tmp_path: Path, table: pd.DataFrame, name: str = "t.csv") -> str:
    """The path of a table written as CSV."""
    path = tmp_path / name
    table.to_csv(path, index=False)
    return str(path)
