"""Citation graphs, and the paper's splits of their nodes."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pactrain.data.named import data_file
from pactrain.errors import DataError

GRAPHS = ("cora_ml", "citeseer", "dblp", "pubmed", "cora")
PER_CLASS, VALIDATION = 20, 500


def load_graph(name: str, root: str | Path | None = None) -> Any:
    """A torch-geometric `Data` from the raw file of `CitationFull`."""
    if name not in GRAPHS:
        raise DataError(f"there is no graph {name!r}; use one of {', '.join(GRAPHS)}")
    try:
        from torch_geometric.io import read_npz
    except ImportError as error:
        raise DataError("graphs need torch-geometric: pip install 'pactrain[graph]'") from error
    return read_npz(str(data_file(f"{name}.npz", root)))


def split_nodes(labels: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Node numbers for training (20 a class), validation (500) and test (the rest), chosen by the seed."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    ordered = labels[order]
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for c in labels.unique():
        chosen[(ordered == c).nonzero()[:PER_CLASS, 0]] = True
    rest = order[~chosen]
    return order[chosen], rest[:VALIDATION], rest[VALIDATION:]
