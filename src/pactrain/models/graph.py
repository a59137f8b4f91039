"""Graph networks of the paper, on torch-geometric: two layers with a ReLU between them, called as `model(x, edge_index)`.

`dropout` stands between the layers and is for plain training; training with a bound learns its own noise.  GAT also drops
attention coefficients, which belongs to that network: it drops edges of the graph.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.models.neighbour_sums import Attention, Spread, checked
from pactrain.models.sparse import SparseLinear
from pactrain.models.tensor_cache import Remembered
from pactrain.runtime.errors import PactrainError

try:
    from torch_geometric.nn import GATConv, GCNConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import add_self_loops, remove_self_loops
except ImportError as error:
    raise PactrainError("graph networks need torch-geometric: pip install 'pactrain[graph]'") from error

WIDTH = 32
HEADS, HEAD_WIDTH, ATTENTION_DROPOUT = 8, 8, 0.6
STEPS, RESTART = 10, 0.1


class Normalised(nn.Module):
    """Sums over a node and its neighbours with the weights D^-1/2 (A + I) D^-1/2, worked out once for each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.spread: Remembered[Spread] = Remembered()

    def forward(self, x: Tensor, edge_index: Tensor) -> Spread:
        """The sums of this graph, for values of the type of x."""
        nodes, dtype = len(x), _exact(x.dtype)
        return self.spread.of(
            edge_index,
            lambda: Spread(gcn_norm(checked(edge_index, nodes), num_nodes=nodes, dtype=dtype), nodes),
            also=(nodes, dtype),
        )


def _exact(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums over neighbours are taken: sparse products know no half precision."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


class GCNLayer(nn.Module):
    """torch-geometric's `GCNConv`, its initial weights too."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        theirs: Any = GCNConv(inputs, outputs)
        self.lin, self.bias = theirs.lin, theirs.bias

    def forward(self, x: Tensor, spread: Spread) -> Tensor:
        """New features of every node."""
        features: Tensor = spread(self.lin(x)) + self.bias
        return features


class GCN(nn.Module):
    """Kipf and Welling's network."""

    def __init__(self, inputs: int, outputs: int, *, width: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.normalised = Normalised()
        self.first = GCNLayer(inputs, width)
        self.first.lin = SparseLinear.over(self.first.lin)
        self.second = GCNLayer(width, outputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        spread = self.normalised(x, edge_index)
        hidden = self.dropout(torch.relu(self.first(x, spread)))
        scores: Tensor = self.second(hidden, spread)
        return scores


class GATLayer(nn.Module):
    """torch-geometric's `GATConv`, its initial weights too."""

    def __init__(self, inputs: int, width: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        theirs: Any = GATConv(inputs, width, heads=heads)
        self.heads, self.dropout, self.slope = heads, dropout, theirs.negative_slope
        self.att_src, self.att_dst, self.bias = theirs.att_src, theirs.att_dst, theirs.bias
        self.lin = theirs.lin

    def forward(self, x: Tensor, attention: Attention) -> Tensor:
        """New features of every node."""
        projected: Tensor = self.lin(x).unflatten(1, (self.heads, -1))
        values = projected.to(_exact(projected.dtype))
        by_end = (torch.block_diag(*at[0].to(values.dtype)[:, :, None]) for at in (self.att_src, self.att_dst))
        source, target = (values.flatten(1) @ torch.cat(list(by_end), 1)).chunk(2, 1)
        weights = attention.weights(source, target, self.slope)
        if self.training and self.dropout > 0:  # F.dropout would do, but draws slowly
            weights = weights * (torch.rand_like(weights) >= self.dropout) / (1 - self.dropout)
        features: Tensor = attention.mean(weights, values).flatten(1).to(projected.dtype) + self.bias
        return features


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
        self.attention: Remembered[Attention] = Remembered()
        self.first = GATLayer(inputs, width, heads=heads, dropout=attention_dropout)
        self.first.lin = SparseLinear.over(self.first.lin)
        self.second = GATLayer(width * heads, outputs, heads=1, dropout=attention_dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        nodes, dtype = len(x), _exact(x.dtype)
        attention = self.attention.of(
            edge_index, lambda: Attention(_with_loops(edge_index, nodes), nodes, dtype), also=(nodes, dtype)
        )
        hidden = self.dropout(torch.relu(self.first(x, attention)))
        scores: Tensor = self.second(hidden, attention)
        return scores


def _with_loops(edge_index: Tensor, nodes: int) -> Tensor:
    """Every node once its own neighbour."""
    edges: Tensor = add_self_loops(remove_self_loops(checked(edge_index, nodes))[0], num_nodes=nodes)[0]
    return edges


class MeanLayer(nn.Module):
    """A node's own features and the mean of its neighbours', each through a linear layer.

    The same function as torch-geometric's `SAGEConv`, which averages first: averaging 32 values per node instead of thousands of
    features takes a tenth of the time.
    """

    def __init__(self, inputs: int, outputs: int, *, linear: type[nn.Linear] = nn.Linear) -> None:
        super().__init__()
        self.neighbours = linear(inputs, outputs, bias=False)
        self.own = linear(inputs, outputs)

    def forward(self, x: Tensor, mean: Spread) -> Tensor:
        """New features of every node."""
        own: Tensor = self.own(x)
        around = mean(self.neighbours(x))
        return around + own


class SAGE(nn.Module):
    """Hamilton, Ying and Leskovec's GraphSAGE with the mean of the neighbours."""

    def __init__(self, inputs: int, outputs: int, *, width: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.mean: Remembered[Spread] = Remembered()
        self.first, self.second = MeanLayer(inputs, width, linear=SparseLinear), MeanLayer(width, outputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        nodes, dtype = len(x), _exact(x.dtype)
        mean = self.mean.of(edge_index, lambda: _means(edge_index, nodes, dtype), also=(nodes, dtype))
        hidden = self.dropout(torch.relu(self.first(x, mean)))
        scores: Tensor = self.second(hidden, mean)
        return scores


def _means(edge_index: Tensor, nodes: int, dtype: torch.dtype) -> Spread:
    edge_index = checked(edge_index, nodes)
    target = edge_index[1]
    degrees = torch.bincount(target, minlength=nodes).to(dtype)
    return Spread((edge_index, 1 / degrees[target]), nodes)


class APPNP(nn.Module):
    """Gasteiger, Bojchevski and Günnemann's: a perceptron whose scores are spread by personalised PageRank."""

    def __init__(self, inputs: int, outputs: int, *, width: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.normalised = Normalised()
        self.first = SparseLinear(inputs, width)
        self.second = nn.Linear(width, outputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of every node."""
        spread = self.normalised(x, edge_index)
        own: Tensor = self.second(self.dropout(torch.relu(self.first(x))))
        scores = own
        for _ in range(STEPS):
            scores = (1 - RESTART) * spread(scores) + RESTART * own
        return scores


MODELS: dict[str, type[nn.Module]] = {"gcn": GCN, "gat": GAT, "sage": SAGE, "appnp": APPNP}


def graph_model(name: str, inputs: int, outputs: int, *, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """Build a graph network of the paper by its name.

    Args:
        name: "gcn", "gat", "sage" or "appnp".
        inputs: Features of a node.
        outputs: Number of classes.
        dropout: Rate of dropout while training.
        seed: Decides the initial weights.

    Returns:
        The network, a function of the nodes' features and the edges (`x`, `edge_index`).

    Raises:
        PactrainError: There is no such network.

    Example:
        >>> type(graph_model("gcn", inputs=8, outputs=3)).__name__
        'GCN'
    """
    if name not in MODELS:
        raise PactrainError(f"there is no graph network {name!r}; use one of {', '.join(MODELS)}")
    make: Callable[..., nn.Module] = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(inputs, outputs, dropout=dropout)
