"""The network for texts: one linear layer on the features of a frozen encoder."""

import torch
from torch import nn


def text_head(inputs: int, outputs: int, *, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """A linear layer on the encoder's features, with dropout before it if asked for."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        linear = nn.Linear(inputs, outputs)
    return nn.Sequential(nn.Dropout(dropout), linear) if dropout else linear
