"""Measured risks against the same draws in float64, and which networks may have noise for each example."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.certification.risks import (
    Risks,
    _known,
    _linear_layers,
    affordable_draws,
    clip_range,
    first_measured,
    measure_risks,
)
from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.losses import LOSSES, Loss
from pactrain.runtime.events import Event, silent
from tests.oracle_networks import Rows, measure, network_of

CE, CPU = LOSSES["cross_entropy"], torch.device("cpu")
CLIPPED = math.log(1e4)


class Product(nn.Module):
    """Weights that are not those of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(2, 2)), nn.Parameter(torch.randn(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.left @ self.right


class Around(nn.Module):
    """A linear layer, and what is made of it."""

    def __init__(self, use: Callable[[nn.Linear, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.use = nn.Linear(2, 2), use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self.layer, x)


def classes(n: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return 3 * torch.randn(n, 2, generator=g), torch.randint(0, 2, (n,), generator=g)


def posterior_of(model: nn.Module, std: float = 4.0) -> Posterior:
    """Much noise, of another size for each weight."""
    posterior = Posterior(model.eval(), Prior(std=std))
    with torch.no_grad():
        posterior.log_std.add_(torch.linspace(-1, 0, posterior.num_weights))
    return posterior


def mlp(*, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2, bias=bias))


# -- numbers -----------------------------------------------------------------------------------------------------------

CASES = [  # network, rows, values asked for, values, progress
    (mlp, 75, 150, 150, [75, 150]), (mlp, 75, 10, 75, [10]), (lambda: mlp(bias=False), 40, 41, 80, [40, 41]),
    (Product, 75, 5, 7, [2, 4, 5]), (Product, 64, 2, 2, [2]), (Product, 33, 1, 1, [1]), (Product, 20, 1, 1, [1]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "n", "asked", "values", "progress"), CASES)
def test_the_same_draws_give_the_same_risks(
    build: Callable[[], nn.Module], n: int, asked: int, values: int, progress: list[int]
) -> None:
    torch.manual_seed(1)
    posterior, (x, y) = posterior_of(build()), classes(n)
    events: list[Event] = []
    risks = measure_risks(posterior, TensorBatches((x, y), 16), CE, values=asked, seed=7, progress=events.append)
    network = network_of(copy.deepcopy(posterior.model).double(), "layer")
    mean = torch.cat([p.detach().double().reshape(-1) for p in posterior.means()]).numpy()
    log_std = posterior.log_std.detach().double().numpy()
    wanted = measure(network, Rows((x.double(),), y), mean, log_std, draws=asked, seed=7, unit=1.0)
    assert wanted.losses.error is not None
    assert (risks.values, risks.n, risks.scheme) == (values, n, wanted.scheme)
    assert risks.loss == pytest.approx(wanted.losses.loss.mean(), rel=1e-5)
    assert risks.error == pytest.approx(wanted.losses.error.mean(), abs=1e-9)
    assert risks.clipped == pytest.approx(np.minimum(wanted.losses.loss, CLIPPED).mean() / CLIPPED, rel=1e-5)
    assert wanted.losses.loss.max() > CLIPPED
    assert events == [Event("certify", step, asked) for step in progress]


def test_batches_of_a_loader_are_chunks_as_they_come() -> None:
    x, y = classes(50)
    batches = LoaderBatches([(x[:40], y[:40]), (x[40:], y[40:])], CPU)
    risks = measure_risks(posterior_of(Product()), batches, CE, values=2, seed=0, progress=silent)
    assert (risks.values, risks.n, risks.scheme) == (2, 50, "chunks")  # 100 examples, 40 of which make a value
    assert len(first_measured(posterior_of(Product()), batches, CE)[0]) == 40
    table = TensorBatches((x, y), 10)
    assert len(first_measured(posterior_of(Product()), table, CE)[0]) == 32
    assert len(first_measured(posterior_of(mlp()), table, CE)[0]) == 50


def test_what_a_loss_does_not_have_is_not_measured() -> None:
    def custom(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch[0]), batch[1], reduction="none")

    posterior, (x, y) = posterior_of(mlp()), classes(30)
    bare = measure_risks(posterior, TensorBatches((x, y), 30), custom, values=1, seed=0, progress=silent)
    whole = measure_risks(posterior, TensorBatches((x, y), 30), CE, values=1, seed=0, progress=silent)
    assert bare == Risks(whole.loss, None, None, 30, 30, "examples")
    target = torch.stack([y, y], 1).float()
    mse = measure_risks(posterior, TensorBatches((x, target), 30), LOSSES["mse"], values=1, seed=0, progress=silent)
    assert (mse.error, mse.clipped) == (None, None)


def test_ranges_of_losses() -> None:
    def of(low: float, high: float) -> float | None:
        return clip_range(Loss("own", lambda o, t: o - t, "regression", low=low, high=high))

    assert clip_range(CE) == pytest.approx(CLIPPED, rel=1e-15)
    assert clip_range(lambda predict, batch: batch) is None
    assert [of(0, 3.0), of(0, math.inf), of(-1, 3.0), of(1, 3.0), of(-1, math.inf)] == [3.0, None, None, None, None]


def test_rounding_does_not_leave_the_unit_interval() -> None:
    found = [_known(v) for v in (math.nan, -1e-17, 0.0, 0.25, 1.0, 1 + 1e-15, 1.5)]
    assert found == [None, 0.0, 0.0, 0.25, 1.0, 1.0, 1.0]


# -- which networks may have noise for each example ---------------------------------------------------------------------


def refusing(layer: nn.Linear, x: Tensor) -> Tensor:
    if layer.weight.isnan().any():
        raise ValueError("NaN")
    return layer(x)  # type: ignore[no-any-return]


def frozen(name: str) -> nn.Module:
    model = mlp()
    model.get_parameter(name).requires_grad_(False)
    return model


def tied(name: str) -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    setattr(model[2], name, getattr(model[0], name))
    return model


class Idle(Product):
    """Weights that are not those of linear layers, and not used."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Own(nn.Linear):
    """A linear layer with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.weight.mean()


SCHEMES: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "plain": (mlp, True),
    "alone": (lambda: nn.Linear(2, 2), True),
    "no bias": (lambda: mlp(bias=False), True),
    "frozen bias": (lambda: frozen("2.bias"), True),
    "frozen weight": (lambda: frozen("2.weight"), False),
    "inside": (lambda: Around(lambda layer, x: layer(x).tanh()), True),
    "other weights": (Product, False),
    "other weights, unused": (Idle, False),
    "tied weights": (lambda: tied("weight"), False),
    "tied biases": (lambda: tied("bias"), False),
    "a class of its own": (lambda: nn.Sequential(Own(2, 2)), False),
    "twice": (lambda: Around(lambda layer, x: layer(layer(x))), False),
    "twice and once": (lambda: nn.Sequential(Around(lambda layer, x: layer(layer(x))), nn.Linear(2, 2)), False),
    "unused": (lambda: Around(lambda _, x: x), False),
    "rows within rows": (lambda: Around(lambda layer, x: layer(x[:, None])[:, 0]), False),
    "weights elsewhere": (lambda: Around(lambda layer, x: layer(x) + layer.weight.sum(0)), False),
    "bias elsewhere": (lambda: Around(lambda layer, x: layer(x) * layer.bias), False),
    "refuses NaN": (lambda: Around(refusing), False),
    "another kind of layer": (lambda: nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), False),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes(name: str) -> None:
    build, each = SCHEMES[name]
    posterior, data = posterior_of(build()), TensorBatches(classes(40), 40)
    before = [p.detach().clone() for p in posterior.means()]
    risks = measure_risks(posterior, data, CE, values=1, seed=0, progress=silent)
    assert risks.scheme == ("examples" if each else "chunks")
    assert risks.values == (40 if each else 1)
    assert all(not module._forward_hooks for module in posterior.model.modules())
    assert all(map(torch.equal, before, posterior.means()))


def test_networks_with_other_weights_have_no_such_layers() -> None:
    assert _linear_layers(posterior_of(tied("bias"))) == _linear_layers(posterior_of(Product())) == []


def scheme_of(batch: Any, loss: Any) -> str:
    posterior, data = posterior_of(nn.Linear(2, 2)), LoaderBatches([batch], CPU)
    return measure_risks(posterior, data, loss, values=1, seed=0, progress=silent).scheme


def test_one_row_of_the_input_is_one_example() -> None:
    x, y = classes(40)

    def pairs(predict: Any, batch: Any) -> Tensor:
        """Two rows make one example."""
        return F.cross_entropy(predict(batch[0]), batch[1], reduction="none").view(-1, 2).mean(1)

    def halves(predict: Any, batch: Any) -> Tensor:
        """The same, with one target for two rows."""
        return F.cross_entropy(predict(batch[0]).view(-1, 2, 2).mean(1), batch[1], reduction="none")

    def alone(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch["x"]), batch["y"], reduction="none")

    def nested(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch[0]["x"]), batch[1], reduction="none")

    class Graph(tuple):  # type: ignore[type-arg]
        edge_index = torch.zeros(2, 0)

    assert scheme_of((x, y), CE) == scheme_of([x, y], CE) == "examples"
    assert scheme_of((x, y), pairs) == "chunks"
    assert scheme_of((x, y[:20]), halves) == "chunks"
    assert scheme_of({"x": x, "y": y}, alone) == "chunks"
    assert scheme_of(({"x": x}, y), nested) == "chunks"
    assert scheme_of(Graph((x, y)), CE) == "chunks"


# -- how many draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "n", "epochs", "steps", "draws"),
    [
        (mlp, 60, 3, 9, 60), (mlp, 60, 8, 9, 120), (mlp, 60, 11, 9, 120), (mlp, 100_000, 8, 9, 200_000),
        (mlp, 100_000, 20, 9, 300_000), (Product, 60, 8, 9, 500), (Product, 80_000, 8, 9, 250),
        (Product, 952_381, 8, 9, 20), (Product, 909_090, 8, 9, 22), (Product, 10**7, 8, 9, 20),
    ],
)  # fmt: skip
def test_draws_of_a_table(build: Callable[[], nn.Module], n: int, epochs: int, steps: int, draws: int) -> None:
    data = TensorBatches(classes(40), 40)
    assert affordable_draws(posterior_of(build()), data, CE, n, epochs=epochs, steps=steps) == draws


def test_draws_of_batches() -> None:
    data = LoaderBatches([classes(40)], CPU)

    def draws(build: Callable[[], nn.Module], steps: int) -> int:
        return affordable_draws(posterior_of(build()), data, CE, 40, epochs=8, steps=steps)

    assert [draws(Product, steps) for steps in (50, 100, 1000, 1664, 1667, 9000)] == [20, 30, 300, 499, 500, 500]
    assert draws(mlp, 50) == 80


def test_the_mode_of_the_network_does_not_matter() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    posterior = posterior_of(model)
    model.train()
    assert affordable_draws(posterior, TensorBatches(classes(40), 40), CE, 40, epochs=8, steps=9) == 80
    assert model.training
