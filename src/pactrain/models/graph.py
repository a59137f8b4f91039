"""Graph networks of the paper, on torch-geometric: two layers with a ReLU between them, called as `model(x, edge_index)`.

`dropout` stands between the layers and is for plain training; training with a bound learns its own noise.  GAT also drops
attention coefficients, which belongs to that network: it drops edges of the graph.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.errors import PactrainError
from pactrain.models.remembered import Remembered
from pactrain.models.sparse import SparseLinear

try:
    from torch_geometric.nn import APPNP as Propagation
    from torch_geometric.nn import GATConv, GCNConv, SimpleConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
except ImportError as error:
    raise PactrainError("graph networks need torch-geometric: pip install 'pactrain[graph]'") from error

WIDTH = 32
HEADS, HEAD_WIDTH, ATTENTION_DROPOUT = 8, 8, 0.6
STEPS, RESTART = 10, 0.1


class Normalised(nn.Module):
    """Edges with self-loops and the weights D^-1/2 A D^-1/2, computed once for each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.edges: Remembered[tuple[Tensor, Tensor]] = Remembered()

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """Edges and their weights."""
        nodes, dtype = len(x), x.dtype
        return self.edges.of(
            edge_index, lambda: gcn_norm(edge_index, num_nodes=nodes, dtype=dtype), also=(nodes, dtype)
        )


def _reading(layer: Any) -> Any:
    """The same layer, its product with the features of the nodes made fast where these are sparse."""
    layer.lin = SparseLinear.over(layer.lin)
    return layer


class GCN(nn.Module):
    """Kipf and Welling's network."""

    def __init__(self, inputs: int, outputs: int, *, width: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.normalised = Normalised()
        self.first = _reading(GCNConv(inputs, width, normalize=False))
        self.second = GCNConv(width, outputs, normalize=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        edges, weights = self.normalised(x, edge_index)
        hidden = self.dropout(torch.relu(self.first(x, edges, weights)))
        scores: Tensor = self.second(hidden, edges, weights)
        return scores


class GAT(nn.Module):
    """Veličković et al.'s: neighbours are averaged with learned attention, by eight heads of eight filters."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        width: int = HEAD_WIDTH,
        heads: int = HEADS,
        attention_dropout: float = ATTENTION_DROPOUT,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.first = _reading(GATConv(inputs, width, heads=heads, dropout=attention_dropout))
        self.second = GATConv(width * heads, outputs, heads=1, dropout=attention_dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        hidden = self.dropout(torch.relu(self.first(x, edge_index)))
        scores: Tensor = self.second(hidden, edge_index)
        return scores


class MeanConv(nn.Module):
    """A node's own features and the mean of its neighbours', each through a linear layer.

    The same function as torch-geometric's `SAGEConv`, which averages first: averaging 32 values a node instead of thousands of
    features takes a tenth of the time.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.neighbours = SparseLinear(inputs, outputs, bias=False)
        self.own = SparseLinear(inputs, outputs)
        self.mean = SimpleConv(aggr="mean")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """New features of every node."""
        around: Tensor = self.mean(self.neighbours(x), edge_index)
        own: Tensor = self.own(x)
        return around + own


class SAGE(nn.Module):
    """Hamilton, Ying and Leskovec's GraphSAGE with the mean of the neighbours."""

    def __init__(self, inputs: int, outputs: int, *, width: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = MeanConv(inputs, width)
        self.second = MeanConv(width, outputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        hidden = self.dropout(torch.relu(self.first(x, edge_index)))
        scores: Tensor = self.second(hidden, edge_index)
        return scores


class APPNP(nn.Module):
    """Gasteiger, Bojchevski and Günnemann's: a perceptron whose scores are spread by personalised PageRank."""

    def __init__(self, inputs: int, outputs: int, *, width: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.normalised = Normalised()
        self.first = SparseLinear(inputs, width)
        self.second = nn.Linear(width, outputs)
        self.spread = Propagation(K=STEPS, alpha=RESTART, normalize=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        own = self.second(self.dropout(torch.relu(self.first(x))))
        scores: Tensor = self.spread(own, *self.normalised(x, edge_index))
        return scores


MODELS: dict[str, type[nn.Module]] = {"gcn": GCN, "gat": GAT, "sage": SAGE, "appnp": APPNP}


def graph_model(name: str, inputs: int, outputs: int, *, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """A network of the paper by name, its initial weights drawn from `seed`."""
    if name not in MODELS:
        raise PactrainError(f"there is no graph network {name!r}; use one of {', '.join(MODELS)}")
    make: Callable[..., nn.Module] = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(inputs, outputs, dropout=dropout)
