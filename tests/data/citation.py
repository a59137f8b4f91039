"""A small graph in the layout of the published citation graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch


def write_graph(
    path: Path, *, nodes: int = 90, classes: int = 3, features: int = 12, seed: int = 0, **more: Any
) -> Path:
    """Nodes of a class share words and neighbours; `more` adds arrays to the file or takes the place of some."""
    g = np.random.default_rng(seed)
    y = np.arange(nodes) % classes
    x = g.random((nodes, features)) < np.where(np.arange(features) % classes == y[:, None], 0.6, 0.1)
    near, far = 14 / nodes, 2 / nodes
    edges = np.triu(g.random((nodes, nodes)) < np.where(y[:, None] == y[None], near, far), 1)
    arrays: dict[str, Any] = {"labels": y}
    for name, matrix in (
        ("adj", sp.csr_matrix(edges.astype(np.float32))),
        ("attr", sp.csr_matrix(x.astype(np.float32))),
    ):
        arrays |= {f"{name}_{key}": getattr(matrix, key) for key in ("data", "indices", "indptr")}
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    np.savez(path, **{k: v for k, v in (arrays | more).items() if v is not None})
    return path


def mask(*nodes: int, size: int = 90) -> torch.Tensor:
    out = torch.zeros(size, dtype=torch.bool)
    out[list(nodes)] = True
    return out
