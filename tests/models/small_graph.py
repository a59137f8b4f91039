"""A small graph, and the networks that are tried on it."""

import torch
from torch import Tensor

NAMES = ("gcn", "gat", "sage", "appnp")


def small_graph(nodes: int = 30, features: int = 40) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = (torch.rand(nodes, features, generator=g) < 0.05).float()
    upper = torch.triu(torch.rand(nodes, nodes, generator=g) < 0.15, 1)
    return x, (upper | upper.T).nonzero().T.contiguous()
