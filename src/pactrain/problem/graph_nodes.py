"""A graph as one batch: the whole graph goes through the network, the loss is that of the selected nodes."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pactrain.runtime.errors import DataError

HOW = "pass a list of batches and loss=callable(predict, batch) to read it your way"


class Nodes(NamedTuple):
    """Some nodes of a graph with their targets; a network is called as `model(x, edge_index)` and gives one row per node."""

    x: Tensor
    edge_index: Tensor
    nodes: Tensor
    y: Tensor


def is_graph(data: Any) -> bool:
    """True for one graph, such as torch-geometric's `Data`."""
    return not isinstance(data, (Dataset, DataLoader, Nodes)) and hasattr(data, "edge_index") and hasattr(data, "x")


def nodes_of(data: Any, role: str, *, device: torch.device, dtype: torch.dtype) -> Nodes:
    """The nodes of a graph to train on, to choose by, or to test on.

    Training: those of `train_mask`, else all with a label that stand in no other mask.  Validation and test: those of `val_mask`
    and `test_mask`, else, in a graph without masks, all with a label.  Nodes without a label have a negative class, or NaN.
    """
    for name in ("x", "edge_index", "y"):
        if not isinstance(getattr(data, name, None), Tensor):
            raise DataError(f"the {role} graph has no tensor {name!r}; it needs x, edge_index and y, or {HOW}")
    y = data.y.squeeze(1) if data.y.ndim == 2 and data.y.shape[1] == 1 else data.y
    if len(y) != len(data.x):
        raise DataError(f"the {role} graph has {len(data.x):,} nodes and {len(y):,} targets; {HOW}")
    known = (
        torch.isfinite(y).reshape(len(y), -1).all(1) if y.is_floating_point() else (y >= 0).reshape(len(y), -1).all(1)
    )
    nodes = (_chosen(data, role) & known).nonzero()[:, 0]
    if not len(nodes):
        raise DataError(f"the {role} graph has no labelled node: {role}_mask and the targets leave none")
    if not bool(torch.isfinite(data.x).all()):
        raise DataError(f"the features of the {role} graph hold NaN or infinity; impute them")
    parts = (data.x.to(dtype), data.edge_index, nodes, y[nodes])
    return Nodes(*(part.to(device) for part in parts))


def _chosen(data: Any, role: str) -> Tensor:
    own = {"test": "test_mask", "validation": "val_mask"}.get(role, "train_mask")
    masks = {name: _mask(data, name) for name in ("train_mask", "val_mask", "test_mask")}
    found = masks[own]
    if found is not None:
        return found
    if own != "train_mask" and masks["train_mask"] is not None:
        raise DataError(f"the {role} graph has a train_mask and no {own}: say in {own} which nodes to use")
    taken = [mask for mask in masks.values() if mask is not None]
    return ~torch.stack(taken).any(0) if taken else torch.ones(len(data.x), dtype=torch.bool, device=data.x.device)


def _mask(data: Any, name: str) -> Tensor | None:
    mask = getattr(data, name, None)
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or mask.shape != (len(data.x),) or mask.dtype != torch.bool:
        shape = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        raise DataError(f"{name} is {shape}; it must be one boolean a node (of several splits choose one)")
    return mask.cpu()


def shared_nodes(first: Nodes, second: Nodes) -> int:
    """How many nodes stand in both, if they belong to the same graph."""
    if not (torch.equal(first.x, second.x) and torch.equal(first.edge_index, second.edge_index)):
        return 0
    return int(torch.isin(second.nodes, first.nodes).sum())
