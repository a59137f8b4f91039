"""A plain multilayer perceptron."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


def mlp(inputs: int, outputs: int, *, widths: Sequence[int] = (256, 256), seed: int = 0) -> nn.Sequential:
    """Build a multilayer perceptron with ReLU and torch's default initialisation.

    Args:
        inputs: Number of features.
        outputs: Number of classes or targets.
        widths: Widths of the hidden layers.
        seed: Decides the initial weights.

    Returns:
        The network.

    Example:
        >>> len(mlp(4, 3, widths=(32,)))
        3
    """
    sizes = [inputs, *widths]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))
