"""Graph networks of the paper, on torch-geometric: two layers, 32 filters."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import APPNP as Propagation
from torch_geometric.nn import GCNConv


class GCN(nn.Module):
    """Kipf and Welling's network."""

    def __init__(self, inputs: int, outputs: int, *, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = GCNConv(inputs, width, cached=True)
        self.second = GCNConv(width, outputs, cached=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        hidden = self.dropout(torch.relu(self.first(x, edge_index)))
        scores: Tensor = self.second(hidden, edge_index)
        return scores


class APPNP(nn.Module):
    """Gasteiger, Bojchevski and Günnemann's: a perceptron whose scores are spread by personalised PageRank."""

    def __init__(self, inputs: int, outputs: int, *, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.second = nn.Linear(width, outputs)
        self.spread = Propagation(K=10, alpha=0.1, cached=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        scores: Tensor = self.spread(self.second(self.dropout(torch.relu(self.first(x)))), edge_index)
        return scores
