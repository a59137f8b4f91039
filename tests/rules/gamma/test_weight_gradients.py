"""Gradients of single examples against those of autograd, one example at a time."""

import torch
from torch import Tensor, nn

from pactrain.rules.gamma import weight_gradients
from pactrain.rules.gamma.weight_gradients import PickedWeights, own_weights, picked_weights, with_own_weights


def one_at_a_time(model: nn.Module, x: Tensor) -> Tensor:
    """The gradient of each row's output, over all weights."""
    params = list(model.parameters())
    found = [torch.autograd.grad(model(row[None]).sum(), params) for row in x]
    return torch.stack([torch.cat([g.reshape(-1) for g in gradients]) for gradients in found])


def test_gradients_at_picked_weights_are_columns_of_all_gradients() -> None:
    model, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), torch.randn(5, 4)
    own = own_weights(dict(model.named_parameters()), len(x))
    gradients = torch.autograd.grad(with_own_weights(model, own)(x).sum(), list(own.values()))
    count = sum(p.numel() for p in model.parameters())
    kept = picked_weights(count, torch.Generator().manual_seed(0), 9)
    out = torch.full((5, 9), torch.nan)
    PickedWeights(list(model.parameters()), kept).gather(gradients, out)
    torch.testing.assert_close(out, one_at_a_time(model, x)[:, kept])


def test_a_parameter_without_a_gradient_counts_as_zero() -> None:
    params = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3))]
    out = torch.full((2, 3), torch.nan)
    PickedWeights(params, torch.tensor([1, 2, 4])).gather([None, torch.arange(6.0).view(2, 3)], out)
    assert out.tolist() == [[0.0, 0.0, 2.0], [0.0, 3.0, 5.0]]


def test_weights_are_picked_in_order_and_once() -> None:
    for many in (weight_gradients.MANY_WEIGHTS, weight_gradients.MANY_WEIGHTS + 1):
        kept = picked_weights(many, torch.Generator().manual_seed(0), 1000).tolist()
        assert kept == sorted(set(kept))
        assert len(kept) == 1000
        assert 0 <= kept[0] < kept[-1] < many
