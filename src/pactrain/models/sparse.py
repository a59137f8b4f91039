"""A linear layer for inputs that are mostly zeros and the same at every step, such as the words of the nodes of a graph."""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.models.neighbour_sums import multiply
from pactrain.models.tensor_cache import Remembered

MOST_FILLED = 0.1
"""Part of the input that may differ from zero for the sparse product to pay."""


class SparseLinear(nn.Linear):
    """`nn.Linear`, ten times as fast on large sparse inputs: x is kept in sparse form, and transposed for the gradient."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.forms: Remembered[tuple[Tensor, Tensor] | None] = Remembered()

    @classmethod
    def over(cls, linear: Any) -> "SparseLinear":
        """A sparse layer that shares the parameters of a linear one."""
        layer = cls(linear.weight.shape[1], linear.weight.shape[0], bias=linear.bias is not None)
        layer.weight, layer.bias = linear.weight, linear.bias
        return layer

    def forward(self, input: Tensor) -> Tensor:
        """x Wᵀ + b."""
        both = self._forms(input)
        if both is None:
            return F.linear(input, self.weight, self.bias)
        product: Tensor = _Product.apply(self.weight, *both)  # type: ignore[no-untyped-call]
        return product if self.bias is None else product + self.bias

    def _forms(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """The input and its transpose in sparse form; None if it is dense, of half precision, or needs a gradient itself."""
        if x.requires_grad or x.ndim != 2 or x.dtype not in (torch.float32, torch.float64):
            return None
        return self.forms.of(x, lambda: _sparse(x))


def _sparse(x: Tensor) -> tuple[Tensor, Tensor] | None:
    if int(torch.count_nonzero(x)) > MOST_FILLED * x.numel():
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return x.to_sparse_csr(), x.T.contiguous().to_sparse_csr()


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed = transposed
        return multiply(x, weight.T)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return multiply(ctx.transposed, gradient).T, None, None
