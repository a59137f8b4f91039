"""Cases for `compare_checkouts.py`: `pactrain.fit` on tables, with every bound, preset, prior, loss and kind of data."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from compare_values import case, cases, files, find, outcome
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import pactrain

Pair = tuple[Tensor, Tensor]
BOUNDS = ("auto", "cgf", "paper", "kl", "quad", "lambda", "classic", "catoni", "bbb", "subgaussian", "cgf_rodriguez")
NUMBERS = ("mse", "l1", "huber", "log_cosh", "quantile", "quantile:0.9")


def rows(n: int = 96, seed: int = 0) -> Pair:
    """Six features and three classes."""
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=source)
    return x, (x @ torch.randn(6, 3, generator=torch.Generator().manual_seed(5))).argmax(1)


def numbers(n: int = 96, seed: int = 0) -> Pair:
    """Six features and a number that depends on them, with noise."""
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=source)
    return x, x[:, 0] * x[:, 1] + x[:, 2] + 0.3 * torch.randn(n, generator=source)


def raw(n: int = 120) -> Tensor:
    """Four columns around 700, 10, 1 and 0.02."""
    z = torch.randn(n, 4, generator=torch.Generator().manual_seed(1))
    return (z + 2) * torch.tensor([350.0, 5.0, 0.5, 0.01])


def net(inputs: int = 6, outputs: int = 3) -> nn.Sequential:
    """A small network, the same each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 12), nn.ReLU(), nn.Linear(12, outputs))


def trained(model: nn.Module | None = None, data: Any = None, **options: Any) -> dict[str, Any]:
    """Everything that `fit` returns, for a few epochs unless `options` say otherwise."""
    given = {"budget": "4 epochs"} | options
    return outcome(pactrain.fit(model or net(), rows() if data is None else data, **given))


# -- tables ------------------------------------------------------------------------------------------------------------

case("table of classes, with a test set")(lambda: trained(test=rows(60, seed=1)))
case("table of classes, no budget")(lambda: trained(budget=None))
case("table of numbers")(lambda: trained(net(6, 1), numbers(), test=numbers(60, seed=1)))
case("table of numbers, 150 epochs")(lambda: trained(net(6, 1), numbers(), budget="150 epochs"))
case("raw table of classes")(lambda: trained(net(4, 2), (raw(), (raw()[:, 0] > 700).long()), budget="60 epochs"))
case("raw table of numbers")(lambda: trained(net(4, 1), (raw(), 200 + raw()[:, 0] + 3 * raw()[:, 1])))
case("raw table of numbers, l1")(lambda: trained(net(4, 1), (raw(), 200 + raw()[:, 0]), loss="l1"))
case("table of whole numbers")(lambda: trained(net(), (rows()[0].mul(4).round().int(), rows()[1])))
case("table with copies of rows")(lambda: trained(data=tuple(torch.cat([t, t[:30]]) for t in rows())))
case("table in numpy arrays")(lambda: trained(data=tuple(t.numpy() for t in rows())))
case("noisy labels")(lambda: trained(data=(rows(200)[0], rows(200, seed=9)[1]), budget="120 epochs"))
case("another seed and delta")(lambda: trained(seed=7, delta=0.2))
case("a network in float64")(lambda: trained(net().double(), (rows()[0].double(), rows()[1])))
case("a network in bfloat16")(lambda: trained(net().bfloat16(), (rows()[0].bfloat16(), rows()[1])))
cases("preset", ("auto", "paper", "authors"), lambda name: trained(preset=name, budget="30 epochs"))
cases("preset on numbers", ("auto", "paper", "authors"), lambda name: trained(net(6, 1), numbers(), preset=name))
cases("bound", BOUNDS, lambda name: trained(bound=name, budget="8 epochs"))
cases("loss", NUMBERS, lambda name: trained(net(6, 1), numbers(), loss=name))
case("loss hinge")(lambda: trained(loss="hinge"))
case("a preset's two stages")(lambda: trained(preset=_rules("AUTHORS", fixed_epochs=6, enter_stage2=0.0), budget=None))
case("rules of one's own")(lambda: trained(preset=_rules("AUTO", gamma_max=50.0, means="natural")))


def _rules(name: str, **changes: Any) -> Any:
    return find(name, fits=lambda v: isinstance(v, pactrain.Rules)).replace(**changes)


# -- priors ------------------------------------------------------------------------------------------------------------

cases("prior per", ("layer", "tensor", "model"), lambda name: trained(prior=name, budget="20 epochs"))
case("prior with a fixed std")(lambda: trained(prior=pactrain.Prior(std=0.1, learn=False)))
case("prior with a starting std and a source")(lambda: trained(prior=pactrain.Prior(std=0.2, source="elsewhere")))
case("prior by a function")(lambda: trained(prior=pactrain.Prior(per=lambda name: name[-1])))
case("prior data")(lambda: trained(prior_data=0.5, budget="20 epochs"))
case("prior data and the kl bound")(lambda: trained(bound="kl", prior_data=0.5, test=rows(60, seed=1)))
case("prior data on a raw table")(lambda: trained(net(4, 1), (raw(), 200 + raw()[:, 0]), prior_data=0.4))


@case("prior by a mapping")
def _mapping() -> Any:
    groups = {"weights": ["0.weight", "2.weight"], "biases": ["0.bias", "2.bias"]}
    return trained(prior=pactrain.Prior(per=groups))


# -- kinds of data and networks ----------------------------------------------------------------------------------------


class Rows(Dataset[Pair]):
    """A dataset of the user's own."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, i: int) -> Pair:
        if i >= 60:
            raise IndexError(i)
        return rows()[0][i], rows()[1][i]


class Batches:
    """Anything that can be passed over again and again."""

    def __iter__(self) -> Iterator[Pair]:
        x, y = rows()
        return ((x[i : i + 32], y[i : i + 32]) for i in range(0, 96, 32))


class Keywords(nn.Module):
    """Takes keyword arguments, as dict batches give them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, *, left: Tensor, right: Tensor) -> Tensor:
        out: Tensor = self.a(left) + self.b(right)
        return out


def dicts() -> list[dict[str, Tensor]]:
    """Batches that are mappings."""
    return [{"left": x[:, :3], "right": x[:, 3:], "labels": y} for x, y in Batches()]


def shuffled() -> Any:
    """A loader with an order of its own each epoch."""
    source = torch.Generator().manual_seed(0)
    return DataLoader(TensorDataset(*rows()), batch_size=20, shuffle=True, generator=source)


case("data in a Dataset")(lambda: trained(data=Rows()))
case("data in a DataLoader")(lambda: trained(data=DataLoader(TensorDataset(*rows()), batch_size=20)))
case("data in a shuffled DataLoader")(lambda: trained(data=shuffled()))
case("data in batches of one's own")(lambda: trained(data=Batches()))
case("dict batches")(lambda: trained(Keywords(), dicts()))


@case("loss of one's own on dict batches")
def _own_loss() -> Any:
    def loss(predict: Callable[..., Tensor], batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(predict(left=batch["left"], right=batch["right"]), batch["labels"], reduction="none")

    return trained(Keywords(), dicts(), loss=loss)


@case("a loss with a range, and the kl bound")
def _ranged() -> Any:
    loss = pactrain.Loss("brier", lambda o, t: (o.softmax(1) - F.one_hot(t, 3)).square().sum(1), "classification", 0, 2)
    return trained(loss=loss, bound="kl")


@case("tied and frozen weights")
def _tied() -> Any:
    torch.manual_seed(0)
    first, second, last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
    second.weight = first.weight
    first.bias.requires_grad_(False)
    return trained(nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), last))


@case("dropout")
def _dropout() -> Any:
    return trained(nn.Sequential(*list(net())[:2], nn.Dropout(0.2), net()[2]))


@case("a network with faint weights")
def _faint() -> Any:
    model = net()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1e-3)
    return trained(model)


cases("certificate", ("progressive", "recursive"), lambda name: trained(certificate=name, budget="20 epochs"))
case("weights of rows and classes")(
    lambda: trained(sample_weight=torch.arange(1.0, 97.0), class_weight="balanced", test=rows(60, seed=1))
)
case("labels that are there or not")(lambda: trained(net(6, 2), (rows()[0], (rows()[0][:, :2] > 0).long())))
case("batches in pieces")(lambda: trained(accumulate=3, clip_norm=0.1))
# -- how training proceeds ---------------------------------------------------------------------------------------------

case("an optimizer of one's own")(lambda: trained(optimizer=lambda groups: torch.optim.SGD(groups, lr=0.01)))
case("an optimizer of one's own, authors")(
    lambda: trained(preset="authors", optimizer=lambda groups: torch.optim.RMSprop(groups, lr=0.001))
)


@case("events")
def _events() -> Any:
    told: list[Any] = []
    result = pactrain.fit(net(), rows(), budget="3 epochs", prior_data=0.3, callbacks=[told.append])
    return {"events": told, "result": outcome(result)}


@case("run folder")
def _folder() -> Any:
    return trained(out="run", test=rows(60, seed=1), preset="authors"), files("run")


@case("interrupted and resumed")
def _resumed() -> Any:
    def interrupt(event: Any) -> None:
        if event.phase == "train" and event.done == 5:
            raise KeyboardInterrupt

    first = trained(net(4, 1), (raw(), raw()[:, 0]), budget="12 epochs", out="run", callbacks=[interrupt])
    kept = files("run")
    again = trained(net(4, 1), (raw(), raw()[:, 0]), budget="12 epochs", out="run", resume=True)
    whole = trained(net(4, 1), (raw(), raw()[:, 0]), budget="12 epochs", out="whole")
    assert np.array_equal(again["weights"]["0.weight"], whole["weights"]["0.weight"])
    return first, kept, again, files("run")
