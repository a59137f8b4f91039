"""Data sets by name: tables of scikit-learn and UCI are read here, images and graphs in their own modules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.data.encoder import Encoder, Numeric
from pactrain.data.images import NAMES as IMAGES
from pactrain.data.images import image_task
from pactrain.data.places import data_file
from pactrain.data.splits import STRATIFIED, fitting_rows, split_rows
from pactrain.data.task import STANDARDISED, Kind, Task, task_of
from pactrain.runtime.errors import DataError, did_you_mean
from pactrain.runtime.untrusted import arrays_of

HELD_OUT = 0.5
"""Half of scikit-learn's small sets is held out: with less, their test scores are mostly chance."""

UCI = ("concrete", "energy", "wine_quality_red", "yacht")


def load_named(
    name: str,
    *,
    test_fraction: float | None,
    seed: int,
    split: int,
    root: str | Path | None,
    prior_data: float = 0.0,
) -> Task:
    """A named data set."""
    if name in SKLEARN:
        return _sklearn(name, HELD_OUT if test_fraction is None else test_fraction, seed, prior_data)
    if name in IMAGES:
        return image_task(name, root)
    if name.startswith("uci:"):
        return _uci(name, split, root, seed, prior_data)
    raise DataError(
        f"there is no data set {name!r}{did_you_mean(name, NAMES)}; use one of {', '.join(NAMES)}, graph:NAME, or a .csv, .parquet or .npz file"
    )


def _sklearn(name: str, fraction: float, seed: int, prior_data: float) -> Task:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    x, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target)
    kind: Kind = "regression" if name == "diabetes" else "classification"
    train, test = split_rows(len(x), y if kind == "classification" else None, fraction, seed)
    classes = tuple(map(str, bunch.target_names)) if kind == "classification" else ()
    columns = [str(c) for c in bunch.feature_names]
    return make_task(
        name,
        x,
        y,
        train,
        test,
        classes=classes,
        columns=columns,
        scale=16.0 if name == "digits" else None,
        seed=seed,
        prior_data=prior_data,
    )


def make_task(
    name: str,
    x: NDArray[Any],
    y: NDArray[Any],
    train: NDArray[Any],
    test: NDArray[Any],
    *,
    classes: tuple[str, ...],
    columns: Sequence[str],
    scale: float | None,
    seed: int,
    prior_data: float,
) -> Task:
    """A task from whole arrays and row numbers.

    Features are divided by a fixed `scale`, which leaves the certificate its assumptions, or standardised.
    """
    fitted = fitting_rows(train, prior_data, seed)
    if scale is None:
        center, spread = x[fitted].mean(axis=0), x[fitted].std(axis=0)
        spread = np.where(spread == 0, 1.0, spread)
    else:
        center, spread = np.zeros(x.shape[1]), np.full(x.shape[1], scale)
    mean, std = (0.0, 1.0) if classes else (float(y[fitted].mean()), float(y[fitted].std()) or 1.0)
    kind: Kind = "classification" if classes else "regression"
    numeric = tuple(Numeric(c, float(m), float(m), float(s)) for c, m, s in zip(columns, center, spread, strict=True))
    encoder = Encoder("target", kind, numeric, (), (), classes, mean, std)
    features = ((x - center) / spread).astype(np.float32)
    targets = y.astype(np.int64) if classes else ((y - mean) / std).astype(np.float32)
    caveats = (() if scale is not None or prior_data else (STANDARDISED,)) + (
        (STRATIFIED,) if classes and len(test) else ()
    )
    return task_of(name, encoder, features, targets, train, test, caveats=caveats, prior_data=prior_data)


def _uci(name: str, split: int, root: str | Path | None, seed: int, prior_data: float) -> Task:
    which = name.removeprefix("uci:")
    if which not in UCI:
        raise DataError(f"there is no UCI set {which!r}; use one of {', '.join('uci:' + u for u in UCI)}")
    path = data_file("uci_regression.npz", root)
    x, y, splits = arrays_of(path, [f"{which}_{part}" for part in ("X", "y", "test_idx")])
    _check_published(x, y, splits, path)
    if not 0 <= split < len(splits):
        raise DataError(f"{name} has splits 0 to {len(splits) - 1}; there is no split {split}")
    test = np.sort(splits[split])
    train = np.setdiff1d(np.arange(len(x)), test)
    columns = [f"x{i}" for i in range(x.shape[1])]
    return make_task(
        name, x, y.reshape(-1), train, test, classes=(), columns=columns, scale=None, seed=seed, prior_data=prior_data
    )


def _check_published(x: NDArray[Any], y: NDArray[Any], splits: NDArray[Any], path: Path) -> None:
    """Rows and targets must be finite numbers, and the splits numbers of rows."""
    numbers = all(a.dtype.kind in "iuf" and np.isfinite(a).all() for a in (x, y, splits))
    fitting = x.ndim == 2 and splits.ndim == 2 and y.size == len(x) > 0 and splits.size > 0
    if not numbers or not fitting or splits.dtype.kind == "f" or not 0 <= splits.min() <= splits.max() < len(x):
        raise DataError(f"{path}: rows, targets and splits do not belong together; fetch it again")


SKLEARN = ("digits", "breast_cancer", "wine", "iris", "diabetes")
NAMES = (*SKLEARN, *IMAGES, *(f"uci:{u}" for u in UCI))
