"""Tables of the user: CSV, Parquet and NPZ files turned into features and targets, and new rows turned the same way.

Numeric columns: missing values become the median, then mean 0 and standard deviation 1.  Text columns: one-hot; a missing
value is a category of its own, a category not seen in training has no column and becomes all zeros.  Everything is
fitted on the training rows.
"""

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.data.task import STANDARDISED, Kind, Task, split_rows
from pactrain.errors import DataError

MAX_CLASSES_OF_INTEGERS = 20
"""An integer target with more different values than this is a quantity, unless the user says otherwise."""

MAX_CATEGORIES = 100
MISSING = "(missing)"


@dataclass(frozen=True)
class Numeric:
    """A column of numbers."""

    name: str
    median: float
    mean: float
    std: float


@dataclass(frozen=True)
class Categorical:
    """A column of categories."""

    name: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Encoder:
    """How rows become features and a target column becomes targets."""

    target: str
    kind: Kind
    numeric: tuple[Numeric, ...]
    categorical: tuple[Categorical, ...]
    constant: tuple[str, ...]
    classes: tuple[str, ...]
    target_mean: float
    target_std: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Encoder":
        """The inverse of `to_dict`."""
        parts = dict(values)
        parts["numeric"] = tuple(Numeric(**c) for c in parts["numeric"])
        parts["categorical"] = tuple(Categorical(c["name"], tuple(c["categories"])) for c in parts["categorical"])
        parts["constant"], parts["classes"] = tuple(parts["constant"]), tuple(parts["classes"])
        return cls(**parts)

    def features(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Rows as features."""
        needed = [c.name for c in (*self.numeric, *self.categorical)]
        absent = [name for name in needed if name not in frame.columns]
        if absent:
            raise DataError(
                f"the file lacks the column{'s' if len(absent) > 1 else ''} {', '.join(map(repr, absent))} "
                f"that the model was trained on; it has {', '.join(map(repr, frame.columns))}"
            )
        parts = [_scaled(_numbers(frame[c.name]), c)[:, None] for c in self.numeric]
        parts += [_one_hot(frame[c.name], c) for c in self.categorical]
        return np.concatenate(parts, axis=1).astype(np.float32) if parts else np.zeros((len(frame), 0), np.float32)

    def targets(self, column: "pd.Series[Any]") -> NDArray[Any]:
        """Targets as class indices or scaled numbers."""
        if self.kind == "regression":
            return ((_target_numbers(column) - self.target_mean) / self.target_std).astype(np.float32)
        index = {name: i for i, name in enumerate(self.classes)}
        texts = column.map(_text)
        unknown = sorted(set(texts) - set(index))
        if unknown:
            row = int(np.flatnonzero(texts == unknown[0])[0]) + 1
            raise DataError(f"row {row} of the target {self.target!r} has the class {unknown[0]!r}, not seen in training")
        return texts.map(index).to_numpy(dtype=np.int64)


def read_frame(path: Path) -> pd.DataFrame:
    """A CSV or Parquet file with unique column names and at least one row."""
    if not path.exists():
        raise DataError(f"there is no file {path}")
    if path.suffix.lower() == ".csv":
        frame = _read_csv(path)
    elif path.suffix.lower() in (".parquet", ".pq"):
        frame = _read_parquet(path)
    else:
        raise DataError(f"{path.name}: files ending in {path.suffix or 'nothing'} are not read; use .csv, .parquet or .npz")
    if frame.empty:
        raise DataError(f"{path} has no rows")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
        _check_header(header, path)
        return pd.read_csv(path, encoding="utf-8-sig", skipinitialspace=True)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise DataError("reading Parquet needs pyarrow: pip install 'pactrain[parquet]'") from error
    except Exception as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    _check_header(list(frame.columns), path)
    return frame


def _check_header(header: list[Any], path: Path) -> None:
    names = [str(name).strip() for name in header]
    if not any(names):
        raise DataError(f"{path} has no header line; its first line must name the columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: the column name {twice[0]!r} stands more than once in the header; rename one of them")


def load_table(
    path: Path, target: str | None, *, kind: Kind | None, drop: tuple[str, ...], test_fraction: float, seed: int
) -> Task:
    """A task from a CSV or Parquet file."""
    frame = read_frame(path)
    if target is None:
        raise DataError(f"say which column is to be predicted: --target NAME; {path.name} has {_listed(frame.columns)}")
    for name in (target, *drop):
        if name not in frame.columns:
            raise DataError(f"{path.name} has no column {name!r}; it has {_listed(frame.columns)}")
    _check_target(frame[target], target)
    kind = kind or _kind(frame[target])
    if kind == "regression":
        _target_numbers(frame[target])
    strata = frame[target].map(_text).to_numpy() if kind == "classification" else None
    train, test = split_rows(len(frame), strata, test_fraction, seed)
    features = frame.drop(columns=[target, *drop])
    encoder = fit_encoder(features.iloc[train], frame[target], train, kind)
    x, y = encoder.features(features), encoder.targets(frame[target])
    return Task(
        name=path.name,
        kind=kind,
        x_train=x[train],
        y_train=y[train],
        x_test=x[test] if len(test) else None,
        y_test=y[test] if len(test) else None,
        classes=encoder.classes,
        target_mean=encoder.target_mean,
        target_std=encoder.target_std,
        encoder=encoder.to_dict(),
        caveats=(STANDARDISED,),
        described={"ignored_constant_columns": list(encoder.constant)},
    )


def fit_encoder(frame: pd.DataFrame, target: "pd.Series[Any]", train: NDArray[Any], kind: Kind) -> Encoder:
    """Learn the encoding from training rows."""
    numeric, categorical, constant = [], [], []
    for name in frame.columns:
        column = frame[name]
        if _is_number(column):
            values = _numbers(column)
            known = values[~np.isnan(values)]
            if not len(known) or (known.min() == known.max() and len(known) == len(values)):
                constant.append(str(name))
                continue
            median = float(np.median(known))
            filled = np.where(np.isnan(values), median, values)
            std = float(filled.std())
            if std == 0:
                constant.append(str(name))
                continue
            numeric.append(Numeric(str(name), median, float(filled.mean()), std))
        elif pd.api.types.is_datetime64_any_dtype(column):
            raise DataError(f"column {name!r} holds dates; turn them into numbers, or leave it out with --drop {name}")
        else:
            categories = tuple(sorted({_category(v) for v in column}))
            if len(categories) > MAX_CATEGORIES and len(categories) > len(column) / 2:
                raise DataError(
                    f"column {name!r} has {len(categories)} different texts in {len(column)} rows: it looks like a name or "
                    f"an identifier; leave it out with --drop {name}"
                )
            if len(categories) < 2:
                constant.append(str(name))
                continue
            categorical.append(Categorical(str(name), categories))
    if not numeric and not categorical:
        raise DataError("no column is left to learn from: all are constant, or dropped")
    classes, mean, std = _target_scale(target, train, kind)
    return Encoder(str(target.name), kind, tuple(numeric), tuple(categorical), tuple(constant), classes, mean, std)


def _target_scale(target: "pd.Series[Any]", train: NDArray[Any], kind: Kind) -> tuple[tuple[str, ...], float, float]:
    if kind == "classification":
        classes = tuple(sorted(set(target.map(_text)), key=_natural))
        if len(classes) < 2:
            raise DataError(f"the target {target.name!r} has a single class, {classes[0]!r}: there is nothing to learn")
        return classes, 0.0, 1.0
    values = _target_numbers(target)[train]
    std = float(values.std())
    if std == 0:
        raise DataError(f"the target {target.name!r} is {values[0]:g} in every training row: there is nothing to learn")
    return (), float(values.mean()), std


def _check_target(column: "pd.Series[Any]", name: str) -> None:
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise DataError(
            f"the target {name!r} is missing in {len(missing)} of {len(column)} rows, first in row {missing[0] + 1}; "
            "fill these rows or remove them"
        )


def _kind(column: "pd.Series[Any]") -> Kind:
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return "classification"
    if pd.api.types.is_integer_dtype(column):
        return "classification" if column.nunique() <= MAX_CLASSES_OF_INTEGERS else "regression"
    return "regression"


def _target_numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    if not _is_number(column):
        row = next(i for i, v in enumerate(column) if not _parses(v))
        raise DataError(
            f"the target {column.name!r} is {column.iloc[row]!r} in row {row + 1}, which is not a number; "
            "regression needs numbers (for classes use --task classification)"
        )
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(f"the target {column.name!r} is {values[bad[0]]} in row {bad[0] + 1}; it must be finite")
    return values


def _parses(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


def _numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """A numeric column as floats, NaN where missing; text in a numeric column and infinities are errors."""
    if not _is_number(column):
        parsed = pd.to_numeric(column, errors="coerce")
        bad = np.flatnonzero((parsed.isna() & column.notna()).to_numpy())
        if len(bad):
            raise DataError(
                f"column {column.name!r} is {column.iloc[bad[0]]!r} in row {bad[0] + 1}; it held numbers in training"
            )
        column = parsed
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(f"column {column.name!r} is infinite in row {infinite[0] + 1}; correct it or leave it empty")
    return values


def _scaled(values: NDArray[np.float64], column: Numeric) -> NDArray[np.float64]:
    return (np.where(np.isnan(values), column.median, values) - column.mean) / column.std


def _one_hot(column: "pd.Series[Any]", known: Categorical) -> NDArray[np.float64]:
    index = {name: i for i, name in enumerate(known.categories)}
    out = np.zeros((len(column), len(known.categories)))
    for row, value in enumerate(column):
        at = index.get(_category(value))
        if at is not None:
            out[row, at] = 1.0
    return out


def _category(value: Any) -> str:
    return MISSING if pd.isna(value) else str(value)


def _text(value: Any) -> str:
    """A class as text; 3.0 and 3 are the same class."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _natural(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if _parses(name) else (1, 0.0, name)


def _listed(columns: Any) -> str:
    names = [repr(str(c)) for c in columns]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
