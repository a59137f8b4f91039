"""The network for texts: one linear layer on the features of a frozen encoder."""

import torch
from torch import nn


def text_head(inputs: int, outputs: int, *, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """Build a linear layer on the encoder's features.

    Args:
        inputs: Number of features.
        outputs: Number of classes.
        dropout: Rate of dropout before the layer.
        seed: Decides the initial weights.

    Returns:
        The layer, behind a dropout layer if there is dropout.

    Example:
        >>> text_head(384, 2)
        Linear(in_features=384, out_features=2, bias=True)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        linear = nn.Linear(inputs, outputs)
    return nn.Sequential(nn.Dropout(dropout), linear) if dropout else linear
