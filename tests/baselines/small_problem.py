"""A small problem and network for plain training."""

import torch
from torch import Tensor, nn


def problem(n: int = 120, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g)
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0).long()


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
