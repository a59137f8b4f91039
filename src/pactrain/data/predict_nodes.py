"""Predictions of a trained network for the nodes of a graph."""

from typing import Any

import torch
from torch import Tensor, nn

from pactrain.data.encoder import Encoder
from pactrain.problem.module_modes import evaluating
from pactrain.runs.prediction import finite
from pactrain.runtime.errors import DataError


@torch.no_grad()
def predict_nodes(model: nn.Module, encoder: Encoder, graph: Any) -> dict[str, list[Any]]:
    """`prediction` for each node, the class, and `probability` of that class."""
    if graph.x.shape[1] != encoder.node_features:
        raise DataError(
            f"the nodes of this graph have {graph.x.shape[1]} features; the network was trained on {encoder.node_features}"
        )
    with evaluating(model):
        return _classes(encoder, finite(model(graph.x, graph.edge_index)))


def _classes(encoder: Encoder, output: Tensor) -> dict[str, list[Any]]:
    best, index = torch.softmax(output.double(), 1).max(1)
    return {"prediction": [encoder.classes[i] for i in index.tolist()], "probability": best.tolist()}
