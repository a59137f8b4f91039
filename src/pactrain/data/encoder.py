"""How rows of a table become features, and a target column becomes targets; fitted once, then applied to new rows.

Numeric columns: missing values become the median, then mean 0 and standard deviation 1.  Dates: the same with days since
1970 (`dates.py`).  Text columns: one-hot; a missing value is a category of its own, a category not seen in training has no
column and becomes all zeros.  Everything is fitted on the training rows.  Columns named as free text become the
features of a frozen encoder (`models/text.py`), which are left as they are.
"""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.data.dates import days, is_dates, looks_like_dates
from pactrain.runtime.errors import DataError

Kind = Literal["classification", "regression"]

MAX_CATEGORIES = 100
RUNNING_TEXT = 4
"""Words in a cell from which on a column of different texts is free text, however few rows it has."""

MOSTLY_NUMBERS = 0.1
"""A text column of which at most this part is no number is a numeric column with mistakes in it."""

MISSING = "(missing)"


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, or of dates as days since 1970."""

    name: str
    median: float
    mean: float
    std: float
    dates: bool = False


@dataclass(frozen=True)
class Categorical:
    """A column of categories."""

    name: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A column of free text, and the encoder whose features stand for it."""

    name: str
    encoder: str
    width: int


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
    text: tuple[Text, ...] = ()
    node_features: int = 0  # where rows are nodes of a graph: their features, taken as they are

    @property
    def inputs(self) -> int:
        """Number of features that a network sees."""
        columns = len(self.numeric) + sum(len(c.categories) for c in self.categorical) + sum(c.width for c in self.text)
        return columns + self.node_features

    @property
    def read_as_text(self) -> tuple[str, ...]:
        """Columns whose cells are texts, whatever they look like."""
        return (*(c.name for c in self.categorical), *(c.name for c in self.text))

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
        parts["text"] = tuple(Text(**c) for c in parts.get("text", ()))
        return cls(**parts)

    def features(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Rows as features."""
        needed = [*(c.name for c in self.numeric), *self.read_as_text]
        absent = [name for name in needed if name not in frame.columns]
        if absent:
            raise DataError(
                f"the file lacks the column{'s' if len(absent) > 1 else ''} {', '.join(map(repr, absent))} "
                f"that the model was trained on; it has {', '.join(map(repr, frame.columns))}"
            )
        parts: list[NDArray[Any]] = [_scaled(frame[c.name], c)[:, None] for c in self.numeric]
        parts += [_one_hot(frame[c.name], c) for c in self.categorical]
        parts += [_embedded(frame[c.name], c.encoder) for c in self.text]
        return np.concatenate(parts, axis=1).astype(np.float32) if parts else np.zeros((len(frame), 0), np.float32)

    def unknown(self, frame: pd.DataFrame) -> list[str]:
        """What is said of categories that training never saw."""
        found = []
        for c in self.categorical:
            new = [value for value in map(_category, frame[c.name]) if value not in c.categories]
            if new:
                found.append(
                    f"column {c.name!r}: {len(new)} rows hold a category not seen in training, such as {new[0]!r}"
                )
        return found

    def targets(self, column: "pd.Series[Any]") -> NDArray[Any]:
        """Targets as class indices or scaled numbers."""
        if self.kind == "regression":
            return ((target_numbers(column) - self.target_mean) / self.target_std).astype(np.float32)
        index = {name: i for i, name in enumerate(self.classes)}
        texts = column.map(class_name)
        unknown = sorted(set(texts) - set(index))
        if unknown:
            row = _row(column, int(np.flatnonzero(texts == unknown[0])[0]))
            raise DataError(
                f"row {row} of the target {self.target!r} has the class {unknown[0]!r}, not seen in training"
            )
        return texts.map(index).to_numpy(dtype=np.int64)


def fit_encoder(
    frame: pd.DataFrame,
    target: "pd.Series[Any]",
    train: NDArray[Any],
    kind: Kind,
    text: Mapping[str, str] | None = None,
) -> Encoder:
    """Learn the encoding from training rows; `text` names the columns of free text, each with its encoder."""
    text = text or {}
    _check_no_names(frame.drop(columns=list(text)))
    columns = [_fit_column(frame[name]) for name in frame.columns if name not in text]
    embedded = tuple(Text(name, used, _embedded(frame[name], used).shape[1]) for name, used in text.items())
    numeric = tuple(c for c in columns if isinstance(c, Numeric))
    categorical = tuple(c for c in columns if isinstance(c, Categorical))
    constant = tuple(c for c in columns if isinstance(c, str))
    if not numeric and not categorical and not embedded:
        raise DataError("no column is left to learn from: all are constant, or dropped")
    classes, mean, std = _target_scale(target, train, kind)
    return Encoder(str(target.name), kind, numeric, categorical, constant, classes, mean, std, embedded)


def _fit_column(column: "pd.Series[Any]") -> Numeric | Categorical | str:
    """The encoding of one column; only its name if it is the same in every row and so tells nothing."""
    name = str(column.name)
    dates = is_dates(column)
    if not dates and not _is_number(column):
        categories = tuple(sorted({_category(v) for v in column}))
        return Categorical(name, categories) if len(categories) > 1 else name
    values = days(column) if dates else _numbers(column)
    known = values[~np.isnan(values)]
    if not len(known):
        return name
    median = float(np.median(known))
    filled = np.where(np.isnan(values), median, values)
    std = float(filled.std())
    differ = filled.min() < filled.max() and std > 0
    return Numeric(name, median, float(filled.mean()), std, dates) if differ else name


def _check_no_names(frame: pd.DataFrame) -> None:
    """Columns of texts that are hardly ever the same are no categories; all of them are named at once."""
    names = []
    for name, column in frame.items():
        if _is_number(column) or is_dates(column):
            continue
        check_not_mostly_numbers(column, "column", f", or leave the column out with --drop {shlex.quote(str(name))}")
        different = len({_category(v) for v in column})
        if different > len(column) / 2 and (different > MAX_CATEGORIES or _words(column) >= RUNNING_TEXT):
            names.append((str(name), different))
    if not names:
        return
    said = "; ".join(
        f"column {name!r} has {different} different texts in {len(frame)} rows" for name, different in names
    )
    words = " ".join(shlex.quote(name) for name, _ in names)
    dates = "; write dates as 2024-12-31 to have them read" if any(looks_like_dates(frame[n]) for n, _ in names) else ""
    looks = "it looks like a name or an identifier" if len(names) == 1 else "they look like names or identifiers"
    raise DataError(
        f"{said}: {looks}; leave out such columns with --drop {words}, or read free text with --text {words}{dates}"
    )


def _words(column: "pd.Series[Any]") -> float:
    """Words in a cell that holds a text, on average."""
    return float(np.mean([len(v.split()) for v in column if isinstance(v, str)] or [0]))


def check_not_mostly_numbers(column: "pd.Series[Any]", what: str, way_out: str) -> None:
    """A text column that holds numbers but for a few cells is a numeric column with mistakes in it."""
    present = column.dropna()
    odd = [i for i, v in enumerate(present) if not _parses(v)]
    if 0 < len(odd) <= MOSTLY_NUMBERS * len(present):
        raise DataError(
            f"{what} {column.name!r} holds numbers except in {len(odd)} rows, first {present.iloc[odd[0]]!r} in row "
            f"{_row(present, odd[0])}; correct these cells, leave them empty{way_out}"
        )


def _target_scale(target: "pd.Series[Any]", train: NDArray[Any], kind: Kind) -> tuple[tuple[str, ...], float, float]:
    if kind == "classification":
        classes = tuple(sorted(set(target.map(class_name)), key=_natural))
        if len(classes) < 2:
            raise DataError(f"the target {target.name!r} has a single class, {classes[0]!r}: there is nothing to learn")
        return classes, 0.0, 1.0
    values = target_numbers(target)[train]
    std = float(values.std())
    if std == 0:
        raise DataError(f"the target {target.name!r} is {values[0]:g} in every training row: there is nothing to learn")
    return (), float(values.mean()), std


def _row(column: "pd.Series[Any]", position: int) -> int:
    """The number of a row as the user counts them: the first below the header is 1."""
    return int(column.index[position]) + 1


def target_numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """A target of numbers, all finite."""
    if not _is_number(column):
        at = next((i for i, v in enumerate(column) if not _parses(v)), 0)
        raise DataError(
            f"the target {column.name!r} is {column.iloc[at]!r} in row {_row(column, at)}, which is not a number; "
            "regression needs numbers (for classes use --task classification)"
        )
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(
            f"the target {column.name!r} is {values[bad[0]]} in row {_row(column, bad[0])}; it must be finite"
        )
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
                f"column {column.name!r} is {column.iloc[bad[0]]!r} in row {_row(column, bad[0])}; it held numbers in training"
            )
        column = parsed
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(
            f"column {column.name!r} is infinite in row {_row(column, infinite[0])}; correct it or leave it empty"
        )
    return values


def _scaled(column: "pd.Series[Any]", fitted: Numeric) -> NDArray[np.float64]:
    values = days(column) if fitted.dates else _numbers(column)
    return (np.where(np.isnan(values), fitted.median, values) - fitted.mean) / fitted.std


def _one_hot(column: "pd.Series[Any]", known: Categorical) -> NDArray[np.float64]:
    index = {name: i for i, name in enumerate(known.categories)}
    out = np.zeros((len(column), len(known.categories)))
    for row, value in enumerate(column):
        at = index.get(_category(value))
        if at is not None:
            out[row, at] = 1.0
    return out


def _embedded(column: "pd.Series[Any]", encoder: str) -> NDArray[np.float32]:
    """The features of texts; a missing one is an empty text."""
    from pactrain.data.text import embed

    features: NDArray[np.float32] = embed(["" if pd.isna(v) else str(v) for v in column], encoder=encoder)
    return features


def _category(value: Any) -> str:
    return MISSING if pd.isna(value) else str(value)


def class_name(value: Any) -> str:
    """A class as text; 3.0 and 3 are the same class."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _natural(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if _parses(name) else (1, 0.0, name)
