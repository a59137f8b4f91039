"""Predictions for raw rows of a table, or for the nodes of a graph."""

from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from pactrain.data.encoder import Encoder
from pactrain.problem.module_modes import evaluating
from pactrain.runtime.errors import DataError


@torch.no_grad()
def predict(model: nn.Module, encoder: Encoder, frame: pd.DataFrame) -> dict[str, list[Any]]:
    """`prediction` for each row (a class, or a number in the target's own units), and `probability` of that class."""
    with evaluating(model):
        output = model(torch.from_numpy(encoder.features(frame)))
    if encoder.kind == "regression":
        values = output.reshape(len(frame)).double() * encoder.target_std + encoder.target_mean
        return {"prediction": values.tolist()}
    return _classes(encoder, output)


@torch.no_grad()
def predict_nodes(model: nn.Module, encoder: Encoder, graph: Any) -> dict[str, list[Any]]:
    """The same for every node of a graph."""
    if graph.x.shape[1] != encoder.node_features:
        raise DataError(
            f"the nodes of this graph have {graph.x.shape[1]} features; the network was trained on {encoder.node_features}"
        )
    with evaluating(model):
        return _classes(encoder, model(graph.x, graph.edge_index))


def _classes(encoder: Encoder, output: Tensor) -> dict[str, list[Any]]:
    best, index = torch.softmax(output.double(), 1).max(1)
    return {"prediction": [encoder.classes[i] for i in index.tolist()], "probability": best.tolist()}
