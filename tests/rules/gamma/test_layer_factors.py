"""Gradients put together from the rows that go through linear layers, against autograd's own."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from pactrain.rules.gamma.layer_factors import SharedGradients, Unlike, products, row_factors, tapped


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


@pytest.mark.parametrize("at_once", [0, 1000])
def test_products_are_those_of_the_gradients_themselves(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.rules.gamma.layer_factors.AT_ONCE", at_once)
    model, x = perceptron(), rows()
    params = trainable(model)
    values = lambda: model(x).square().sum(1)  # noqa: E731
    factors, found = row_factors(model, params, values)
    scales = [0.5, 2.0, 3.0, 0.1, 7.0]
    gradients = one_by_one(params, values())
    for weights, kernel in ((None, products(factors)), (scales, products(factors, scales))):
        roots = torch.tensor(weights or [1.0] * 5, dtype=torch.float64).sqrt()
        flat = torch.stack([torch.cat([r * g.reshape(-1) for r, g in zip(roots, gs, strict=True)]) for gs in gradients])
        torch.testing.assert_close(kernel, flat @ flat.T, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found, values())
    assert not any(m._forward_hooks for m in model.modules())


def test_a_frozen_layer_has_no_part_in_them() -> None:
    model, x = perceptron(), rows()
    assert isinstance(model, nn.Sequential)
    model[0].requires_grad_(False)
    model[4].bias.requires_grad_(False)
    params = trainable(model)
    factors, _ = row_factors(model, params, lambda: model(x).sum(1))
    flat = torch.stack([torch.cat([g.reshape(-1) for g in gs]) for gs in one_by_one(params, model(x).sum(1))])
    torch.testing.assert_close(products(factors), flat @ flat.T)


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
    with pytest.raises(Unlike):
        row_factors(model, trainable(model), lambda: model(x).square().sum(1))
    assert not any(m._forward_hooks for m in model.modules())


class Graph(nn.Module):
    """A chain of nodes: each looks at its neighbours; scale and bias sit outside of the linear layers."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.outer = inner, nn.Linear(5, 2)
        self.bias = nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.inner(x)
        hidden = torch.relu(hidden + hidden.roll(1, 0) + self.bias)
        scores: Tensor = self.outer(hidden)
        return scores + scores.roll(-1, 0)


@pytest.mark.parametrize("inner", [lambda: nn.Linear(5, 5), Twice, Aside, Tied])
def test_gradients_of_a_shared_pass_are_those_of_autograd(inner: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model, x = Graph(inner()).double(), rows(12)
    params = trainable(model)
    with tapped(model, params) as taps:
        values = model(x).square().sum(1)
    shared = SharedGradients(params, taps, values)
    assert shared.taps
    for value, wanted in zip(values, one_by_one(params, values), strict=True):
        for mine, own in zip(shared.of(value), wanted, strict=True):
            assert mine is not None
            torch.testing.assert_close(mine, own)


class Odd(nn.Module):
    """A network whose linear layer is not what it seems."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.bag, self.last = how, nn.EmbeddingBag(20, 6), nn.Linear(6, 3)
        self.seen = nn.Linear(6, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.bag(tokens)
        if self.how == "without gradient":
            with torch.no_grad():
                hidden = hidden + self.seen(hidden)
        if self.how == "half precision":
            with torch.autocast("cpu", torch.bfloat16):
                hidden = self.seen(hidden)
            hidden = hidden.float()
        scores: Tensor = self.last(hidden)
        return scores


@pytest.mark.parametrize("how", ["looked up", "without gradient", "half precision"])
def test_odd_layers_of_a_shared_pass_are_left_to_autograd(how: str) -> None:
    torch.manual_seed(0)
    model = Odd(how)
    params = trainable(model)
    with tapped(model, params) as taps:
        values = model(torch.randint(0, 20, (9, 4))).square().sum(1)
    shared = SharedGradients(params, taps, values)
    for value in values:
        own = torch.autograd.grad(value, params, retain_graph=True, allow_unused=True)
        for mine, theirs in zip(shared.of(value), own, strict=True):
            assert (mine is None) == (theirs is None)
            if mine is not None and theirs is not None:
                torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("far", [1, 2, 8])
def test_rows_that_mix_are_noticed_however_far_apart(far: int) -> None:
    hidden, x = nn.Linear(5, 3).double(), rows(16)
    with pytest.raises(Unlike):
        row_factors(hidden, trainable(hidden), lambda: (out := hidden(x)).sum(1) + out.roll(far, 0).sum(1))
