"""Predictions for raw rows of a table."""

from typing import Any

import pandas as pd
import torch
from torch import nn

from pactrain.data.encoder import Encoder
from pactrain.modes import evaluating


@torch.no_grad()
def predict(model: nn.Module, encoder: Encoder, frame: pd.DataFrame) -> dict[str, list[Any]]:
    """`prediction` for each row (a class, or a number in the target's own units), and `probability` of that class."""
    with evaluating(model):
        output = model(torch.from_numpy(encoder.features(frame)))
    if encoder.kind == "regression":
        values = output.reshape(len(frame)).double() * encoder.target_std + encoder.target_mean
        return {"prediction": values.tolist()}
    best, index = torch.softmax(output.double(), 1).max(1)
    return {"prediction": [encoder.classes[i] for i in index.tolist()], "probability": best.tolist()}
