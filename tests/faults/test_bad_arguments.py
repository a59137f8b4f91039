"""Calls that cannot be meant: each is answered with one error in words, before anything is trained."""

import sys
from collections.abc import Callable
from functools import partial
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import pactrain
from pactrain import PactrainError, Posterior, Prior, certify
from pactrain.certification.before_training import Described
from pactrain.models.named import make_model
from tests.zoo import rows

NAN, INF = float("nan"), float("inf")
X, Y = rows()


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(6, 3)


def fit(data: Any = (X, Y), model: Any = None, **options: Any) -> Callable[[], Any]:
    """A call of `fit` that is to be refused."""
    return lambda: pactrain.fit(network() if model is None else model, data, **({"budget": "1 epoch"} | options))


def stated(**options: Any) -> Callable[[], Any]:
    """A call of `certify` that is to be refused."""
    return lambda: certify(Posterior(network()), (X, Y), **({"draws": 2} | options))


def filled(value: float) -> nn.Module:
    model = nn.Linear(6, 3)
    model.weight.data.fill_(value)
    return model


def of_an_instance() -> Any:
    model = network()
    return pactrain.fit(model, (X, Y), optimizer=torch.optim.SGD(model.parameters(), lr=0.1))  # type: ignore[arg-type]


def trained_on(data: Any) -> Any:
    """`fit` with data, which a function may make."""
    return fit(data() if isfunction(data) else data)()


def trained(model: Any) -> Any:
    """`fit` with a network, which a function may make."""
    return fit(model=model() if isfunction(model) else model)()


NEGATIVE = nn.CrossEntropyLoss(weight=torch.tensor([-1.0, 1.0, 1.0]))

OPTIONS: dict[str, tuple[Any, ...]] = {
    "seed": (1.5, "0", None, 2**70, True, NAN),
    "delta": ("0.05", None, 0, 1, -0.1, 1.5, NAN, [0.05], True, 5e-324),
    "budget": (NAN, -1, 0, [1], True, "1 parsec", "five epochs", "1.5 epochs", "", "1e400 s"),
    "prior": ("none", 3, None, ["layer"]),
    "bound": (None, "no such", 3),
    "preset": ("no such", 3, None),
    "prior_data": (NAN, 2, -0.5, "half", 1, True),
    "device": ("no such", 3.5, None, "meta", "cuda:99"),
    "optimizer": ("adam", 3, print),
    "clip_norm": (NAN, 0, -1, "1", True),
    "precision": ("fp8", 3),
    "certificate": ("no such", 3),
    "class_weight": ("balance", [-1, 1, 1], [NAN, 1, 1], [0, 0, 0], [1, 1], {7: 1.0}),
    "sample_weight": ("x", [1, 2], -torch.ones(len(Y)), NAN * torch.ones(len(Y))),
    "callbacks": (print, [3], "print", None),
    "loss": (3, "no such", NEGATIVE, nn.Linear, "quantile:2", "quantile:x", [1]),
    "calibration": (3, (X[:, :2], Y), (X * NAN, Y)),
    "progress": ("no", 3),
    "accumulate": (0, 1.5, True),
    "metrics": ([1], {"m": 3}, {"loss": len}),
    "out": (3, "a\0b", "/etc/passwd", "/etc/passwd/below", "/proc/no/such"),
    "test": (3, (X[:, :2], Y), (X, Y[:3]), (X * NAN, Y), "digits"),
}
STDS: tuple[Any, ...] = (NAN, -1.0, 0.0, INF, "x")
DATA: dict[str, Any] = {
    "sparse": (X.to_sparse(), Y),
    "compressed rows": lambda: (X.to_sparse_csr(), Y),
    "meta": (X.to("meta"), Y),
    "complex": (X.to(torch.complex64), Y),
    "too narrow": (X[:, :5], Y),
    "no rows": (X[:0], Y[:0]),
    "fewer labels": (X, Y[:5]),
    "labels in a column": (X, Y[:, None]),
    "labels below zero": (X, Y - 1),
    "labels of a billion": (X, Y + 10**9),
    "more classes than scores": (X, Y * 2),
    "NaN": (X * NAN, Y),
    "infinite": (X * INF, Y),
    "batches that are nested": lambda: [(torch.nested.nested_tensor([X[0], X[1]]), Y[:2])],
    "batches that are sparse": [(X.to_sparse(), Y)],
    "batches without numbers": [(X.to("meta"), Y)],
    "batches of names that the network does not know": [{"x": X, "y": Y}],
    "features of 1e308": (X.double().clamp(-1, 1).numpy() * 1e308, Y),
    "nothing": None,
    "a number": 3,
    "a text": "digits",
    "one tensor": X,
    "texts": (X.numpy().astype(str), Y),
    "no columns": (X[:, :0], Y),
    "masked rows": lambda: (np.ma.masked_array(X.numpy(), mask=X.numpy() > 2), Y),
    "masked labels": lambda: (X, np.ma.masked_array(Y.numpy(), mask=Y.numpy() == 1)),
    "months": lambda: (X, pd.period_range("2000", periods=len(X))),
    "an iterator": iter([(X, Y)]),
    "an empty list": [],
    "caveats that are one text": lambda: Described((X, Y), caveats="hello"),
    "doubts that are one text": lambda: Described((X, Y), test_doubts="hello"),
    "a caveat that is a number": lambda: Described((X, Y), caveats=[3]),  # type: ignore[list-item]
    "a configuration that is a list": lambda: Described((X, Y), config=[1]),  # type: ignore[arg-type]
    "a configuration that JSON cannot hold": lambda: Described((X, Y), config={"a": object()}),
}


WIDER = torch.cat([X, X], 1)
PREDICTED: dict[str, Any] = {
    "wider rows": WIDER,
    "a single row": X[0],
    "NaN": X * NAN,
    "infinite": X * INF,
    "1e39": X.double() * 1e39,
    "sparse": X.to_sparse(),
    "meta": X.to("meta"),
    "nothing": None,
    "no rows": X[:0],
    "text": "digits",
}


def predicted(rows: Any) -> Callable[[], Any]:
    """A call of `predict` that is to be refused."""
    return lambda: pactrain.fit(network(), (X, Y), budget="1 epoch").predict(rows)


class Changed(nn.Module):
    """A network whose output is changed into something else."""

    def __init__(self, change: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.change = nn.Linear(6, 3), change

    def forward(self, x: torch.Tensor) -> Any:
        return self.change(self.layer(x))


class OfTwo(nn.Module):
    """A network of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, more: torch.Tensor) -> Any:
        return self.layer(x + more)


MODELS: dict[str, Any] = {
    "two inputs": lambda: OfTwo(),
    "an output without a gradient": lambda: Changed(torch.Tensor.detach),
    "an output of whole numbers": lambda: Changed(torch.Tensor.long),
    "a complex output": lambda: Changed(lambda output: output.to(torch.complex64)),
    "no output": lambda: Changed(lambda output: None),
    "NaN as output": lambda: Changed(lambda output: output * NAN),
    "fewer outputs than rows": lambda: Changed(lambda output: output[:-1]),
    "a class": nn.Linear,
    "a number": 3,
    "meta": nn.Linear(6, 3, device="meta"),
    "lazy": lambda: nn.LazyLinear(3),
    "nothing to train": nn.ReLU(),
    "frozen": nn.Linear(6, 3).requires_grad_(False),
    "complex": lambda: nn.Linear(6, 3).to(torch.complex64),
    "half precision": nn.Linear(6, 3).half(),
    "weights of NaN": filled(NAN),
    "weights of infinity": filled(INF),
    "fewer outputs than classes": nn.Linear(6, 2),
    "several outputs": nn.LSTM(6, 3),
    "one output in all": nn.Sequential(nn.Linear(6, 3), nn.Flatten(0)),
}
CALLS: dict[str, Callable[[], Any]] = {
    "an optimiser instead of a function": of_an_instance,
    "targets of 1e300": fit((X.double(), X[:, :1].double() * 1e300), nn.Linear(6, 1).double()),
    "targets beyond single precision": fit((X, X[:, :1].double().clamp(-1, 1).numpy() * 1e300), nn.Linear(6, 1)),
    "a metric of text": fit(metrics={"m": lambda output, target: "text"}),
    "a loss of NaN": fit(loss=lambda predict, batch: predict(batch[0])[:, 0] * NAN),
    "one loss in all": fit(loss=lambda predict, batch: predict(batch[0]).sum()),
    "a loss without a lower limit": fit((X * 0, Y), loss=lambda predict, batch: -predict(batch[0]).square().sum(1)),
    "losses of whole numbers": fit(loss=lambda predict, batch: predict(batch[0]).argmax(1)),
    "complex losses": fit(loss=lambda predict, batch: predict(batch[0]).sum(1) * 1j),
    "losses without a gradient": fit(loss=lambda predict, batch: predict(batch[0]).square().sum(1).detach()),
    "to resume perhaps": lambda: pactrain.fit(network(), (X, Y), resume="yes", out="/proc/no/such"),  # type: ignore[arg-type]
    "to resume nowhere": fit(resume=True),
    "certify on nothing": lambda: certify(Posterior(network()), None),
    "certify on wider rows": lambda: certify(Posterior(network()), (WIDER, Y)),
    "certify on wider test rows": stated(test=(WIDER, Y)),
    "prepare for no epoch": lambda: pactrain.prepare(network(), (X, Y), epochs=0),
    "prepare for NaN epochs": lambda: pactrain.prepare(network(), (X, Y), epochs=NAN),  # type: ignore[arg-type]
    "prepare for a text of epochs": lambda: pactrain.prepare(network(), (X, Y), epochs="5"),  # type: ignore[arg-type]
    "a scan of a network": lambda: pactrain.estimate_moment(network(), (X, Y)),  # type: ignore[arg-type]
    "a scan of NaN draws": lambda: pactrain.estimate_moment(Posterior(network()), (X, Y), draws=NAN),  # type: ignore[arg-type]
    "a scan of wider rows": lambda: pactrain.estimate_moment(Posterior(network()), (WIDER, Y)),
    "a posterior on no device": lambda: Posterior(nn.Linear(6, 3, device="meta")),
    "a prior of no name": lambda: Posterior(network(), prior="none"),
    "a bound for NaN rows": lambda: pactrain.bounds.Classic(n=NAN),  # type: ignore[arg-type]
    "a bound for a text of rows": lambda: pactrain.bounds.Classic(n="100"),  # type: ignore[arg-type]
    "a bound with a text for delta": lambda: pactrain.bounds.Classic(n=100, delta="0.05"),  # type: ignore[arg-type]
    "certify a network": lambda: certify(network(), (X, Y)),  # type: ignore[arg-type]
    "a posterior of a number": lambda: Posterior(3),  # type: ignore[arg-type]
    "nested tensors": lambda: fit((torch.nested.nested_tensor([X[0], X[1, :3]], layout=torch.jagged), Y[:2]))(),
    "mlp without a neuron": lambda: make_model("mlp:0", 4, 3, 0),
    "mlp of 100,000 layers": lambda: make_model("mlp:" + "1-" * 100_000 + "1", 4, 3, 0),
    "mlp of 400 terabytes": lambda: make_model("mlp:10000000-10000000", 4, 3, 0),
    "a network of no name": lambda: make_model("perceptron", 4, 3, 0),
    **{f"draws={v!r}": stated(draws=v) for v in (NAN, 1.5, "3", 0, -1, None, True)},
    **{f"certify, delta={v!r}": stated(delta=v) for v in ("x", 0, 1, NAN, None)},
    **{f"certify, seed={v!r}": stated(seed=v) for v in (0.5, "0", None)},
    **{f"certify, caveats={v!r}": stated(caveats=v) for v in ("hello", [3], 3)},
    **{f"prior std={v!r}": partial(Prior, "layer", v) for v in STDS},
    **{f"{name}={value!r:.40}": fit(**{name: value}) for name, values in OPTIONS.items() for value in values},
    **{f"data: {name}": partial(trained_on, v) for name, v in DATA.items()},
    **{f"predict: {name}": predicted(rows) for name, rows in PREDICTED.items()},
    **{f"model: {name}": partial(trained, m) for name, m in MODELS.items()},
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch remarks that sparse, nested and lazy things are new
@pytest.mark.parametrize("name", CALLS)
def test_calls_that_cannot_be_meant(name: str) -> None:
    with pytest.raises(PactrainError) as refused:
        CALLS[name]()
    assert 15 < len(str(refused.value)) < 1000


FILES = {
    "exit": ("import sys\nsys.exit(0)\n", "ended the program"),
    "exit in the function": ("import sys\ndef net(i, o):\n    sys.exit(0)\n", "ended the program"),
    "mistake": ("def net(i, o):\n    return 1 / 0\n", "ZeroDivisionError"),
    "no Python": ("def net(:\n", "SyntaxError"),
    "no function": ("net = 3\n", "has no function"),
    "no network": ("def net(i, o):\n    return 3\n", "not a torch module"),
    "missing package": ("import no_such_package\n", "ModuleNotFoundError"),
}


@pytest.mark.parametrize("name", FILES)
def test_networks_from_files_that_do_something_else(name: str, tmp_path: Path) -> None:
    source, said = FILES[name]
    (tmp_path / "net.py").write_text(source)
    with pytest.raises(PactrainError, match=said):
        make_model(f"{tmp_path / 'net.py'}:net", 4, 3, 0)


@pytest.mark.parametrize("size", [1e30, 1e20, 1e10])
def test_weights_and_features_of_any_size_end_with_a_result(size: float, tmp_path: Path) -> None:
    model = network()
    for p in model.parameters():
        p.data.mul_(size)
    for out, found in (
        ("weights", lambda out: pactrain.fit(model, (X, Y), budget="1 epoch", out=out)),
        ("features", lambda out: pactrain.fit(network(), (X * size, Y), budget="1 epoch", out=out)),
    ):
        result = found(tmp_path / out)
        assert result.certificate.recheck()
        assert pactrain.Certificate.read(tmp_path / out / "certificate.json") == result.certificate


def test_python_itself_is_not_caught() -> None:
    def leaves(*_: Any) -> Any:
        sys.exit(3)

    with pytest.raises(SystemExit):
        pactrain.fit(network(), (X, Y), loss=leaves, budget="1 epoch")


def test_numbers_in_any_order_of_bytes_and_pieces_without_end() -> None:
    def trained_weight(x: Any, y: Any, **options: Any) -> torch.Tensor:
        model = nn.Linear(6, 3)
        model.load_state_dict(network().state_dict())
        pactrain.fit(model, (x, y), budget="1 epoch", **options)
        return model.weight

    plain = trained_weight(X, Y)
    assert torch.equal(trained_weight(X.numpy().astype(">f8"), Y.numpy().astype(">i8")), plain)
    assert torch.equal(trained_weight(X.numpy().astype(np.longdouble), Y), plain)
    assert torch.allclose(trained_weight(X, Y, accumulate=10**9), plain, atol=1e-4)
