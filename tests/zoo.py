"""Networks of every awkward kind, each with data it can be trained on."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Tied(nn.Module):
    """The last layer uses the transposed weight of the first: one tensor under two uses, and under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6, bias=False)
        self.second = nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.second(torch.tanh(self.first(x)))))
        return out


class Frozen(nn.Module):
    """A frozen body and a trainable head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.head = nn.Linear(8, 3)
        self.body.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(torch.relu(self.body(x)))
        return out


class Unused(nn.Module):
    """A layer that no output depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(6, 3)
        self.unused = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.used(x)
        return out


class Normed(nn.Module):
    """BatchNorm and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


class Keywords(nn.Module):
    """Takes keyword arguments only, as dict batches give them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, *, left: Tensor, right: Tensor) -> Tensor:
        out: Tensor = self.a(left) + self.b(right)
        return out


class TwoInputs(nn.Module):
    """Takes two positional inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Bilinear(3, 3, 3)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        out: Tensor = self.mix(left, right)
        return out


class Adapter(nn.Module):
    """A LoRA-like adapter: frozen weight plus a trainable product of two thin matrices, the second starting at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(6, 3)
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, 6) / 3)
        self.up = nn.Parameter(torch.zeros(3, 2))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x) + x @ self.down.T @ self.up.T
        return out


class GraphNet(nn.Module):
    """Two graph convolutions with a dense normalised adjacency; the whole graph is one batch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        hidden = torch.relu(adjacency @ self.first(x))
        out: Tensor = adjacency @ self.second(hidden)
        return out


def rows(n: int = 48, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features and three classes that a linear map separates."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, (x @ torch.randn(6, 3, generator=g)).argmax(1)


def graph() -> dict[str, Tensor]:
    """A graph with labels on some nodes."""
    x, y = rows(30)
    g = torch.Generator().manual_seed(1)
    adjacency = (torch.rand(30, 30, generator=g) < 0.1).float() + torch.eye(30)
    adjacency = adjacency / adjacency.sum(1, keepdim=True)
    return {"x": x, "adjacency": adjacency, "labels": y, "mask": torch.arange(30) < 20}


def graph_loss(predict: Callable[..., Any], batch: dict[str, Tensor]) -> Tensor:
    """Losses of the labelled nodes."""
    out = predict(batch["x"], batch["adjacency"])
    return F.cross_entropy(out[batch["mask"]], batch["labels"][batch["mask"]], reduction="none")


def _rows_batch() -> Any:
    return rows()


def _keyword_batches() -> Any:
    x, y = rows()
    return [{"left": x[i : i + 24, :3], "right": x[i : i + 24, 3:], "labels": y[i : i + 24]} for i in (0, 24)]


def _two_inputs() -> Any:
    x, y = rows()
    return [((x[i : i + 24, :3], x[i : i + 24, 3:]), y[i : i + 24]) for i in (0, 24)]


def mlp() -> nn.Module:
    """An ordinary network."""
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


# name -> (network, data, loss)
ZOO: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], Any]] = {
    "mlp": (mlp, _rows_batch, None),
    "tied": (Tied, _rows_batch, None),
    "frozen": (Frozen, _rows_batch, None),
    "unused": (Unused, _rows_batch, None),
    "batchnorm": (Normed, _rows_batch, None),
    "keywords": (Keywords, _keyword_batches, None),
    "two inputs": (TwoInputs, _two_inputs, None),
    "adapter": (Adapter, _rows_batch, None),
    "graph": (GraphNet, lambda: [graph()], graph_loss),
}


def build(name: str, seed: int = 0) -> nn.Module:
    """A network of the zoo with reproducible weights."""
    torch.manual_seed(seed)
    return ZOO[name][0]()


SHORT = "6 epochs"
"""A budget for tests of what happens around training."""


def weights(model: nn.Module) -> Tensor:
    """All weights of a network as one vector."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])
