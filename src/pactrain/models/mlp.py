"""A plain multilayer perceptron."""

from itertools import pairwise

import torch
from torch import nn


def mlp(inputs: int, outputs: int, *, width: int = 256, depth: int = 2, seed: int = 0) -> nn.Sequential:
    """`depth` hidden layers of `width` ReLU units, torch's default initialisation drawn from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for a, b in pairwise([inputs, *[width] * depth]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(width if depth else inputs, outputs))
