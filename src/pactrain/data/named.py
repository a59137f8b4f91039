"""Data sets by name."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.data.task import STANDARDISED, Kind, Task, split_rows
from pactrain.errors import DataError

HELD_OUT = 0.5
"""Half of scikit-learn's small sets is held out: with less, their test scores are mostly chance."""

UCI = ("concrete", "energy", "wine_quality_red", "yacht")


def data_file(name: str, root: str | Path | None) -> Path:
    """Find a data file: in `root`, then in $PACTRAIN_DATA, then in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pactrain"
    places = [Path(p) for p in (root, os.environ.get("PACTRAIN_DATA")) if p] + [cache]
    for place in places:
        if (place / name).is_file():
            return place / name
    looked = ", ".join(map(str, places))
    raise DataError(f"{name} was not found (looked in {looked}); put it there, or name its folder with --data-root")


def load_named(name: str, *, test_fraction: float | None, seed: int, split: int, root: str | Path | None) -> Task:
    """A named data set."""
    if name in SKLEARN:
        return _sklearn(name, HELD_OUT if test_fraction is None else test_fraction, seed)
    if name == "mnist":
        return _mnist(root)
    if name.startswith("uci:"):
        return _uci(name, split, root)
    raise DataError(f"there is no data set {name!r}; use one of {', '.join(NAMES)}, or a .csv, .parquet or .npz file")


def _sklearn(name: str, fraction: float, seed: int) -> Task:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    x, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target)
    kind: Kind = "regression" if name == "diabetes" else "classification"
    train, test = split_rows(len(x), y if kind == "classification" else None, fraction, seed)
    if name == "digits":
        x, caveats = x / 16.0, ()  # a fixed scale: the certificate needs no caveat
    else:
        x, caveats = _standardised(x, train), (STANDARDISED,)
    classes = tuple(map(str, bunch.target_names)) if kind == "classification" else ()
    return make_task(name, kind, x, y, train, test, classes, caveats)


def _standardised(x: NDArray[Any], train: NDArray[Any]) -> NDArray[Any]:
    std = x[train].std(axis=0)
    return np.asarray((x - x[train].mean(axis=0)) / np.where(std == 0, 1.0, std))


def make_task(
    name: str,
    kind: Kind,
    x: NDArray[Any],
    y: NDArray[Any],
    train: NDArray[Any],
    test: NDArray[Any],
    classes: tuple[str, ...],
    caveats: tuple[str, ...],
) -> Task:
    """A task from whole arrays and row numbers; regression targets are standardised."""
    mean, std = 0.0, 1.0
    if kind == "regression":
        mean, std = float(y[train].mean()), float(y[train].std()) or 1.0
        targets = ((y - mean) / std).astype(np.float32)
    else:
        targets = y.astype(np.int64)
    features = x.reshape(len(x), -1).astype(np.float32)
    held_out = (features[test], targets[test]) if len(test) else (None, None)
    return Task(name, kind, features[train], targets[train], *held_out, classes, mean, std, None, caveats)


def _mnist(root: str | Path | None) -> Task:
    with np.load(data_file("mnist.npz", root), allow_pickle=False) as file:
        x_train, x_test = (file[k].reshape(len(file[k]), -1).astype(np.float32) / 255 for k in ("x_train", "x_test"))
        y_train, y_test = (file[k].astype(np.int64) for k in ("y_train", "y_test"))
    return Task("mnist", "classification", x_train, y_train, x_test, y_test, tuple(map(str, range(10))))


def _uci(name: str, split: int, root: str | Path | None) -> Task:
    which = name.removeprefix("uci:")
    if which not in UCI:
        raise DataError(f"there is no UCI set {which!r}; use one of {', '.join('uci:' + u for u in UCI)}")
    with np.load(data_file("uci_regression.npz", root), allow_pickle=False) as file:
        x, y, splits = file[f"{which}_X"], file[f"{which}_y"], file[f"{which}_test_idx"]
    if not 0 <= split < len(splits):
        raise DataError(f"{name} has splits 0 to {len(splits) - 1}; there is no split {split}")
    test = np.sort(splits[split])
    train = np.setdiff1d(np.arange(len(x)), test)
    return make_task(name, "regression", _standardised(x, train), y, train, test, (), (STANDARDISED,))


def load_npz(path: Path, target: str | None, *, kind: Kind | None, test_fraction: float, seed: int) -> Task:
    """A task from an NPZ file: the array named by `target` (by default "y"), and "X", "x" or the only other array."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {k: file[k] for k in file.files}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as NPZ: {error}") from error
    name = target or "y"
    others = [k for k in arrays if k != name]
    features = next((k for k in ("X", "x") if k in others), others[0] if len(others) == 1 else None)
    if name not in arrays or features is None:
        raise DataError(f"{path.name} holds {', '.join(arrays)}; it needs a target array ({name!r}) and features 'X'")
    x, y = np.asarray(arrays[features], dtype=np.float64), arrays[name].squeeze()
    if len(x) != len(y) or not len(x) or y.ndim != 1:
        raise DataError(f"{path.name}: {features} has shape {x.shape} and {name} {y.shape}; they must match row by row")
    bad = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))
    if len(bad):
        raise DataError(f"{path.name}: {features} is NaN or infinite in row {bad[0]}; impute or remove such rows")
    kind = kind or ("regression" if y.dtype.kind == "f" else "classification")
    classes: tuple[str, ...] = ()
    if kind == "classification":
        values, y = np.unique(y, return_inverse=True)
        classes = tuple(map(str, values))
        if len(classes) < 2:
            raise DataError(f"{path.name}: {name} has a single class, {classes[0]!r}: there is nothing to learn")
    elif y.dtype.kind not in "fiu" or not np.isfinite(y.astype(np.float64)).all() or y.std() == 0:
        raise DataError(f"{path.name}: {name} must hold finite numbers that differ, for regression")
    train, test = split_rows(len(x), y if kind == "classification" else None, test_fraction, seed)
    flat = x.reshape(len(x), -1)
    return make_task(path.name, kind, _standardised(flat, train), y, train, test, classes, (STANDARDISED,))


SKLEARN = ("digits", "breast_cancer", "wine", "iris", "diabetes")
NAMES = (*SKLEARN, "mnist", *(f"uci:{u}" for u in UCI))
