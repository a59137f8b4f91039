"""The linear layer for sparse inputs."""

import pytest
import torch

from pactrain.models.sparse import SparseLinear


@pytest.mark.parametrize("filled", [0.02, 0.9])
@pytest.mark.parametrize("bias", [True, False])
def test_sparse_linear_is_linear(filled: float, bias: bool) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.rand(50, 60, generator=g) * (torch.rand(50, 60, generator=g) < filled)
    layer = SparseLinear(60, 7, bias=bias)
    plain = torch.nn.Linear(60, 7, bias=bias)
    plain.load_state_dict(layer.state_dict())
    for module in (layer, plain):
        module(x).square().sum().backward()
    torch.testing.assert_close(layer(x), plain(x))
    for ours, theirs in zip(layer.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    inside = x.clone().requires_grad_()
    layer(inside).sum().backward()
    torch.testing.assert_close(inside.grad, layer.weight.sum(0).expand_as(x))
