"""Gradients put together from the rows that go through linear layers, against autograd's own."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from pactrain.rules.gamma.example_kernel import NotLinearLayers, factors_of


def rows(n: int = 9) -> Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def perceptron() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 7),
        nn.Tanh(),
        nn.Linear(7, 6, bias=False),
        nn.LayerNorm(6, elementwise_affine=False),
        nn.Linear(6, 3),
    ).double()


def one_by_one(params: list[nn.Parameter], values: Tensor) -> list[list[Tensor]]:
    return [list(torch.autograd.grad(v, params, retain_graph=True)) for v in values]


def trainable(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def kernel_of(model: nn.Module, values: Callable[[], Tensor]) -> Tensor:
    """Put together from the factors."""
    kernel = torch.zeros((), dtype=torch.float64)
    for layer, inputs, slopes in factors_of(model, trainable(model), values)[0]:
        weight, bias = (p is not None and p.requires_grad for p in (layer.weight, layer.bias))
        kernel = kernel + (weight * (inputs @ inputs.T) + bias) * (slopes @ slopes.T)
    return kernel


def test_products_are_those_of_the_gradients_themselves() -> None:
    model, x = perceptron(), rows()
    values = lambda: model(x).square().sum(1)  # noqa: E731
    gradients = one_by_one(trainable(model), values())
    flat = torch.stack([torch.cat([g.reshape(-1) for g in gs]) for gs in gradients])
    torch.testing.assert_close(kernel_of(model, values), flat @ flat.T, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(factors_of(model, trainable(model), values)[1], values())
    assert not any(m._forward_hooks for m in model.modules())


def test_a_frozen_layer_has_no_part_in_them() -> None:
    model, x = perceptron(), rows()
    assert isinstance(model, nn.Sequential)
    model[0].requires_grad_(False)
    model[4].bias.requires_grad_(False)
    gradients = one_by_one(trainable(model), model(x).sum(1))
    flat = torch.stack([torch.cat([g.reshape(-1) for g in gs]) for gs in gradients])
    torch.testing.assert_close(kernel_of(model, lambda: model(x).sum(1)), flat @ flat.T)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(torch.tanh(self.layer(x)))
        return out


class Aside(Twice):
    """Its weight is also used without calling the layer."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x) + x @ self.layer.weight
        return out


class Mixing(Twice):
    """Every row depends on those before it."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x).cumsum(0)
        return out


class Tied(Twice):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(5, 5)
        self.other.weight = self.layer.weight

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.other(torch.tanh(self.layer(x)))
        return out


@pytest.mark.parametrize(
    "build",
    [
        Twice,
        Aside,
        Mixing,
        Tied,
        lambda: nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5)),
        lambda: nn.Sequential(nn.Linear(5, 5), nn.ReLU(inplace=True), nn.Linear(5, 2)),
        lambda: nn.Sequential(nn.Unflatten(1, (5, 1)), nn.Linear(1, 2), nn.Flatten()),
    ],
)
def test_any_other_network_is_refused(build: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model, x = build().double(), rows()
    with pytest.raises(NotLinearLayers):
        factors_of(model, trainable(model), lambda: model(x).square().sum(1))
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize("far", [1, 2, 8])
def test_rows_that_mix_are_noticed_however_far_apart(far: int) -> None:
    hidden, x = nn.Linear(5, 3).double(), rows(16)
    with pytest.raises(NotLinearLayers):
        factors_of(hidden, trainable(hidden), lambda: (out := hidden(x)).sum(1) + out.roll(far, 0).sum(1))
