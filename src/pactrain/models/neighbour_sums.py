"""Sums over the neighbours of every node as sparse products, several times as fast as gathering and scattering.

What depends on the graph alone is worked out once.  Gradients are sparse products too, for which transposes are kept.
"""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from pactrain.runtime.errors import DataError


def checked(edge_index: Tensor, nodes: int) -> Tensor:
    """The edges in long integers, if all of them are between nodes that exist: sparse products do not look."""
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
        raise DataError(
            f"edge_index names nodes {int(edge_index.min())} to {int(edge_index.max())}, but x has {nodes} rows, numbered from 0; "
            "where nodes are left out, their edges have to be left out too (torch_geometric.utils.subgraph)"
        )
    return edge_index.long()


class Edges:
    """Directed edges, sorted by the nodes that they lead to and, in `back`, by those that they come from."""

    def __init__(self, edge_index: Tensor, nodes: int) -> None:
        self.nodes = nodes
        self.order = torch.argsort(edge_index[1] * nodes + edge_index[0])
        self.source, self.target = edge_index[:, self.order]
        self.back = torch.argsort(self.source, stable=True)
        self.back_target = self.target[self.back]
        self.starts, self.back_starts = _starts(self.target, nodes), _starts(self.source, nodes)

    def matrix(self, values: Tensor) -> Tensor:
        """A, with a value for every edge: A x sums over the edges into a node."""
        return _csr(self.starts, self.source, values, (self.nodes, self.nodes))

    def transposed(self, values: Tensor) -> Tensor:
        """Aᵀ, of the same values."""
        return _csr(self.back_starts, self.back_target, values[self.back], (self.nodes, self.nodes))


def _starts(sorted_by: Tensor, nodes: int) -> Tensor:
    counts = torch.bincount(sorted_by, minlength=nodes)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _csr(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(starts, columns, values, shape)


def multiply(matrix: Tensor, x: Tensor) -> Tensor:
    """A sparse matrix times a dense one, in the matrix's precision: there are no such products in half precision."""
    with torch.autocast(x.device.type, enabled=False):
        return matrix @ x.to(matrix.dtype)


class Spread:
    """x ↦ A x with a fixed weight for every edge."""

    def __init__(self, weighted: tuple[Tensor, Tensor], nodes: int) -> None:
        edge_index, weights = weighted
        edges = Edges(edge_index, nodes)
        weights = weights[edges.order]
        self.matrix, self.transposed = edges.matrix(weights), edges.transposed(weights)

    def __call__(self, x: Tensor) -> Tensor:
        """The weighted sum over the neighbours, for every node."""
        return _product(x, self.matrix, self.transposed).to(x.dtype)


class Attention:
    """Means over the neighbours, with weights that depend on both ends of an edge, for several heads at once."""

    def __init__(self, edge_index: Tensor, nodes: int, dtype: torch.dtype) -> None:
        self.edges = edges = Edges(edge_index, nodes)
        ones, count = edge_index.new_ones(len(edges.source), dtype=dtype), len(edges.source)
        numbers = torch.arange(count, device=ones.device)
        at_target, at_source = (
            _csr(edges.starts, numbers, ones, (nodes, count)),
            _csr(edges.back_starts, edges.back, ones, (nodes, count)),
        )
        every = torch.arange(count + 1, device=ones.device)
        self.at_target = at_target, _csr(every, edges.target, ones, (count, nodes))
        self.at_source = at_source, _csr(every, edges.source, ones, (count, nodes))
        """Sums over the edges of a node, and the node's value at each of its edges."""

    def weights(self, source: Tensor, target: Tensor, slope: float) -> Tensor:
        """Softmax, over the edges into a node, of LeakyReLU(s + t), from s and t, (nodes, heads), at an edge's two ends."""
        into, at_target = self.at_target
        out_of, at_source = self.at_source
        scores = torch.nn.functional.leaky_relu(
            _product(source, at_source, out_of) + _product(target, at_target, into), slope
        )
        with torch.no_grad():
            largest = torch.segment_reduce(scores, "max", offsets=self.edges.starts, axis=0)
        shares = (scores - multiply(at_target, largest)).exp()
        return shares / _product(_product(shares, into, at_target), at_target, into)

    def mean(self, weights: Tensor, x: Tensor) -> Tensor:
        """Σ over the edges into a node of their weights, (edges, heads), times x, (nodes, heads, values), at their sources."""
        mean: Tensor = _Mean.apply(weights, x, self.edges)  # type: ignore[no-untyped-call]
        return mean


def _product(x: Tensor, matrix: Tensor, transposed: Tensor) -> Tensor:
    product: Tensor = _Product.apply(x, matrix, transposed)  # type: ignore[no-untyped-call]
    return product


class _Product(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed, ctx.dtype = transposed, x.dtype
        return multiply(matrix, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return multiply(ctx.transposed, gradient).to(ctx.dtype), None, None


class _Mean(Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, x: Tensor, edges: Edges) -> Tensor:
        by_head, values = weights.T.contiguous(), x.transpose(0, 1).contiguous()
        ctx.save_for_backward(by_head, values)
        ctx.edges = edges
        return torch.stack([multiply(edges.matrix(w), v) for w, v in zip(by_head, values, strict=True)], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        by_head, values = ctx.saved_tensors
        edges, gradients = ctx.edges, gradient.transpose(0, 1).contiguous()
        heads = list(zip(by_head, gradients, values, strict=True))
        with torch.autocast(gradient.device.type, enabled=False):
            to_x = [edges.transposed(w) @ g for w, g, _ in heads]
            to_weights = [torch.sparse.sampled_addmm(edges.matrix(w), g, v.T, beta=0.0).values() for w, g, v in heads]
        return torch.stack(to_weights, 1), torch.stack(to_x, 1), None
