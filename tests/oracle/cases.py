"""Small real problems for `fit`, with the facts from which the prices of their certificates follow."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pactrain import Prior
from pactrain.certification.statement import Caveat
from pactrain.rules.presets import AUTHORS, AUTO
from pactrain.rules.rules import Rules
from tests.oracle.formulas import UNTAKEN, price_of_units


@dataclass(frozen=True)
class Case:
    """Arguments of `fit`, and the facts from which the certificate's prices follow."""

    model: nn.Module
    data: Any
    more: Mapping[str, Any] = field(default_factory=dict)
    test: Any = None
    unit_nats: float = UNTAKEN  # of tables under the auto rules
    fixed: bool = False
    loss_unit: float = 1.0
    per: str = "layer"
    rules: Rules = AUTO
    caveats: tuple[Caveat, ...] = ()


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers with tanh between them."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def digits(first: int, last: int) -> tuple[Tensor, Tensor]:
    """Some rows of scikit-learn's digits, between 0 and 1."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return torch.tensor(x[first:last] / 16).float(), torch.tensor(y[first:last])


def default(_: Path) -> Case:
    more = {"budget": "2 epochs"}
    return Case(mlp(64, 16, 10), digits(0, 400), more, test=digits(400, 600))


def without_test(_: Path) -> Case:
    return Case(mlp(64, 16, 10), digits(0, 300), {"budget": "8 epochs", "seed": 5})


def trained_for_kl(_: Path) -> Case:
    more = {"budget": "3 epochs", "bound": "kl", "seed": 3, "delta": 0.1}
    return Case(mlp(64, 16, 10), digits(0, 400), more, test=digits(400, 500))


def prior_from_half(_: Path) -> Case:
    more = {"budget": "4 epochs", "bound": "kl", "prior_data": 0.5}
    return Case(mlp(64, 16, 10), digits(0, 400), more, test=digits(400, 500), unit_nats=0.0, fixed=True)


def table_with_categories(folder: Path) -> Case:
    from pactrain.data.load import load
    from pactrain.data.tables import Columns
    from pactrain.models.named import make_model

    source = np.random.default_rng(0)
    colour, size = source.choice(["red", "green", "blue"], 300), source.normal(50, 12, 300)
    kind = np.where((colour == "red") ^ (size > 55), "yes", "no")
    lines = [f"{c},{s:.6f},{k}" for c, s, k in zip(colour, size, kind, strict=True)]
    (folder / "table.csv").write_text("\n".join(["colour,size,kind", *lines]) + "\n")
    task = load(str(folder / "table.csv"), Columns(target="kind"), seed=1)
    model = make_model("mlp:12", task.inputs, task.outputs, 1)
    more = {"budget": "2 epochs", "seed": 1}
    return Case(model, task.train, more, test=task.test, caveats=task.caveats)


def regression(_: Path) -> Case:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(2049, 3, generator=source)  # two chunks, the second with the row that would be left alone
    y = torch.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * torch.randn(2049, generator=source)
    return Case(mlp(3, 8, 1), (x, y), {"budget": "2 epochs"}, test=(x[:100] + 1, y[:100]))


class Neighbours(nn.Module):
    """Linear layers that see the mean over a node's neighbours and itself."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in (self.first, self.last):
            ones = x.new_ones(edge_index.shape[1], 1)
            count = 1 + x.new_zeros(len(x), 1).index_add(0, edge_index[1], ones)
            x = torch.tanh(layer(x + x.index_add(0, edge_index[1], x[edge_index[0]])) / count)
        return 4 * x


def graph(_: Path) -> Case:
    from torch_geometric.data import Data

    nodes = torch.arange(90)
    source, y = torch.Generator().manual_seed(1), nodes % 3
    x = nn.functional.one_hot(y, 6).float() + 0.5 * torch.randn(90, 6, generator=source)
    edges = torch.stack([nodes, (nodes + 3) % 90])
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), y=y, train_mask=nodes < 60, test_mask=nodes >= 60)
    return Case(Neighbours(), data, {"budget": "10 epochs"}, test=data, unit_nats=0.0)


def two_stages(_: Path) -> Case:
    rules = AUTHORS.replace(draws=3)
    more = {"preset": rules, "budget": "6 epochs", "prior": "tensor", "seed": 2}
    return Case(mlp(64, 12, 10), digits(0, 300), more, test=digits(300, 400), unit_nats=0.0, per="tensor", rules=rules)


def _raw(numbers: bool) -> tuple[Tensor, Tensor]:
    """Columns around 700, 10, 1 and 0.02; classes, or amounts around 200."""
    z = torch.randn(200, 4, generator=torch.Generator().manual_seed(1))
    x = (z + 2) * torch.tensor([350.0, 5.0, 0.5, 0.01])
    return x, 200 + 50 * z.sum(1) if numbers else (z.sum(1) > 0).long() + (z[:, 0] > 1)


def units_of_inputs(_: Path) -> Case:
    x, y = _raw(False)
    more = {"budget": "4 epochs"}
    return Case(mlp(4, 20, 3), (x[:150], y[:150]), more, test=(x[150:], y[150:]), unit_nats=price_of_units(4))


def units_of_targets(_: Path) -> Case:
    return Case(mlp(4, 20, 1), _raw(True), {"budget": "4 epochs"}, unit_nats=price_of_units(5), loss_unit=256.0**2)


def convolution(_: Path) -> Case:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 10))
    x, y = digits(0, 229)
    x = x.view(-1, 1, 8, 8)
    return Case(model, (x[:129], y[:129]), {"budget": "3 epochs"}, test=(x[129:], y[129:]))


def chunks(_: Path) -> Case:
    torch.manual_seed(0)
    layers = [nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 2, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(60, 10)]
    return Case(nn.Sequential(*layers), digits(0, 129), {"budget": "3 epochs"}, test=digits(129, 229))


def walk(_: Path) -> Case:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(80, 4, generator=source)
    y = (x[:, 0] + 1.5 * torch.randn(80, generator=source) > 0).long()
    return Case(mlp(4, 8, 2), (x, y))  # labels of which many are wrong, so that γ falls


def fixed_prior(_: Path) -> Case:
    more = {"budget": "9 epochs", "prior": Prior(std=0.05, learn=False)}
    return Case(mlp(64, 16, 10), digits(0, 300), more, test=digits(300, 400), unit_nats=0.0, fixed=True)


CASES: dict[str, Callable[[Path], Case]] = {
    f.__name__: f
    for f in (
        default,
        without_test,
        trained_for_kl,
        prior_from_half,
        table_with_categories,
        regression,
        graph,
        two_stages,
        units_of_inputs,
        units_of_targets,
        convolution,
        chunks,
        walk,
        fixed_prior,
    )
}
