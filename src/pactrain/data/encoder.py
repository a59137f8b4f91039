"""How rows of a table become features, and a target column becomes targets; fitted once, then applied to new rows.

Numbers and durations: missing values become the median, then mean 0 and standard deviation 1.  Dates: the same with their
year, month, weekday, hour and days since 1970.  Texts are categories, one-hot: a missing value is a category of its own; a
category that is rare or was not seen in training has no column and becomes all zeros.  Columns named as free text become the
features of a frozen encoder (`data/text.py`), which are left as they are.  Columns that tell nothing are left out
(`data/identifiers.py`).  `data/encoder_fit.py` learns all of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.data.cell_values import Reading, days, each_value, is_number, row_number
from pactrain.runtime.errors import DataError

Kind = Literal["classification", "regression"]

MISSING = "(missing)"

PARTS: dict[str, Callable[["pd.Series[Any]"], Any]] = {
    "year": lambda moments: moments.dt.year,
    "month": lambda moments: moments.dt.month,
    "weekday": lambda moments: moments.dt.day_of_week,
    "hour": lambda moments: moments.dt.hour,
    "day": days,
}
"""Features of a date; `day` counts days since 1970."""


@dataclass(frozen=True)
class Numeric:
    """A feature that is a number: a column of numbers or durations, or one part of a column of dates."""

    name: str
    median: float
    mean: float
    std: float
    part: str = ""
    reading: Reading = field(default_factory=lambda: Reading("number", "1234.5"))
    missing: int = 0  # training rows that have the median instead


@dataclass(frozen=True)
class Categorical:
    """A column of categories, those that have a feature; `different` counts all of them."""

    name: str
    categories: tuple[str, ...]
    different: int


@dataclass(frozen=True)
class Text:
    """A column of free text, and the encoder whose features stand for it."""

    name: str
    encoder: str
    width: int


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Encoder:
    """How rows become features and a target column becomes targets."""

    target: str
    kind: Kind
    numeric: tuple[Numeric, ...]
    categorical: tuple[Categorical, ...]
    left_out: tuple[LeftOut, ...]
    classes: tuple[str, ...]
    target_mean: float
    target_std: float
    text: tuple[Text, ...] = ()
    node_features: int = 0  # where rows are nodes of a graph: their features, taken as they are
    target_reading: Reading = field(default_factory=lambda: Reading("number", "1234.5"))

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
        parts["numeric"] = tuple(Numeric(**c | {"reading": Reading(**c["reading"])}) for c in parts["numeric"])
        parts["categorical"] = tuple(
            Categorical(**c | {"categories": tuple(c["categories"])}) for c in parts["categorical"]
        )
        parts["left_out"] = tuple(LeftOut(**c) for c in parts["left_out"])
        parts["classes"] = tuple(parts["classes"])
        parts["text"] = tuple(Text(**c) for c in parts["text"])
        parts["target_reading"] = Reading(**parts["target_reading"])
        return cls(**parts)

    def rows(self, raw: Any) -> NDArray[np.float32]:
        """Raw rows as features: a frame, or an array of the columns in order where all of them are numbers."""
        if hasattr(raw, "to_pandas"):  # polars, pyarrow
            raw = raw.to_pandas()
        if isinstance(raw, pd.DataFrame):
            return self.features(raw.reset_index(drop=True))
        names, array = [c.name for c in self.numeric], np.asarray(raw)
        if self.read_as_text or any(c.part for c in self.numeric) or array.ndim < 2 or array[0].size != len(names):
            raise DataError(
                f"the model was trained on a table with the columns {', '.join(map(repr, self.columns))}: pass a DataFrame "
                "that has them (model(x) takes rows that are encoded already)"
            )
        return self.features(pd.DataFrame(array.reshape(len(array), -1), columns=names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are used."""
        return tuple(dict.fromkeys([*(c.name for c in self.numeric), *self.read_as_text]))

    def features(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Rows as features."""
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise DataError(
                f"the file lacks the column{'s' if len(absent) > 1 else ''} {', '.join(map(repr, absent))} "
                f"that the model was trained on; it has {', '.join(map(repr, frame.columns))}"
            )
        out = np.empty((len(frame), self.inputs), np.float32)  # filled column by column: a table may be large
        at = 0
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which networks and predictions refuse
            for part in self._parts(frame):
                out[:, at : at + part.shape[1]] = part
                at += part.shape[1]
        return out

    def _parts(self, frame: pd.DataFrame) -> Iterator[NDArray[Any]]:
        """The features of one column after another."""
        yield from _scaled(frame, self.numeric)
        yield from (_one_hot(frame[c.name], c) for c in self.categorical)
        yield from (embedded(frame[c.name], c.encoder) for c in self.text)

    def unknown(self, frame: pd.DataFrame) -> list[str]:
        """What is said of categories that training never saw; of a column with rare ones nobody can tell."""
        found = []
        for c in self.categorical:
            new = [value for value in each_value(frame[c.name], category) if value not in c.categories]
            if new and len(c.categories) == c.different:
                found.append(
                    f"column {c.name!r}: {len(new)} rows hold a category not seen in training, such as {new[0]!r}"
                )
        return found

    def targets(self, column: "pd.Series[Any]") -> NDArray[Any]:
        """Targets as class indices or scaled numbers."""
        if self.kind == "regression":
            values = target_numbers(column, self.target_reading)
            return ((values - self.target_mean) / self.target_std).astype(np.float32)
        index = {name: i for i, name in enumerate(self.classes)}
        texts = each_value(column, category)
        unknown = sorted(set(texts) - set(index))
        if unknown:
            row = row_number(column, int(np.flatnonzero(texts == unknown[0])[0]))
            raise DataError(
                f"row {row} of the target {self.target!r} has the class {unknown[0]!r}, not seen in training"
            )
        return each_value(column, lambda value: index[category(value)]).astype(np.int64)


def target_numbers(column: "pd.Series[Any]", reading: Reading) -> NDArray[np.float64]:
    """A target of numbers or durations, all finite."""
    values = reading.tried(column).to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad) and not is_number(column):
        raise DataError(
            f"the target {column.name!r} is {column.iloc[bad[0]]!r} in row {row_number(column, bad[0])}, which is not a "
            "number; regression needs numbers (for classes use --task classification)"
        )
    if len(bad):
        raise DataError(
            f"the target {column.name!r} is {values[bad[0]]} in row {row_number(column, bad[0])}; it must be finite"
        )
    return values


def _scaled(frame: pd.DataFrame, fitted: tuple[Numeric, ...]) -> Iterator[NDArray[Any]]:
    """One array per feature; the cells of a column are read once."""
    read: dict[str, pd.Series[Any]] = {}
    for c in fitted:
        if c.name not in read:
            read = {c.name: c.reading.values(frame[c.name])}
        moments = read[c.name]
        values = np.asarray(PARTS[c.part](moments) if c.part else moments, dtype=np.float64)
        yield ((np.where(np.isnan(values), c.median, values) - c.mean) / c.std)[:, None]


def _one_hot(column: "pd.Series[Any]", known: Categorical) -> NDArray[np.float64]:
    index = {name: i for i, name in enumerate(known.categories)}
    at = each_value(column, lambda value: index.get(category(value), -1)).astype(np.int64)
    rows = np.flatnonzero(at >= 0)
    out = np.zeros((len(column), len(known.categories)))
    out[rows, at[rows]] = 1.0
    return out


def embedded(column: "pd.Series[Any]", encoder: str) -> NDArray[np.float32]:
    """The features of texts; a missing one is an empty text."""
    from pactrain.data.text import embed

    features: NDArray[np.float32] = embed(["" if pd.isna(v) else str(v) for v in column], encoder=encoder)
    return features


def category(value: Any) -> str:
    """A category or class as text; 3.0 and 3 are the same one."""
    if pd.isna(value):
        return MISSING
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
