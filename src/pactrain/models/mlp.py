"""A plain multilayer perceptron."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


def mlp(inputs: int, outputs: int, *, widths: Sequence[int] = (256, 256), seed: int = 0) -> nn.Sequential:
    """Hidden ReLU layers of the given widths, torch's default initialisation drawn from `seed`."""
    sizes = [inputs, *widths]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))
