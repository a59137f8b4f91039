"""Columns of a table in the features that a network sees, read from the encoding that a run keeps as plain values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Encoding = Mapping[str, Any]

OTHER = "(another)"
"""What is shown of a category that has no feature of its own."""


def feature_groups(encoding: Encoding) -> dict[str, list[int]]:
    """The features of each column: several for a category, a date or a text.

    Args:
        encoding: `preprocess` of a run's configuration.

    Example:
        >>> feature_groups({"numeric": [{"name": "age"}], "categorical": [{"name": "sex", "categories": ["f", "m"]}]})
        {'age': [0], 'sex': [1, 2]}
    """
    groups: dict[str, list[int]] = {}
    for name, features in _layout(encoding):
        groups.setdefault(name, []).extend(features)
    return groups


def _layout(encoding: Encoding) -> Iterator[tuple[str, range]]:
    at = 0
    for column in encoding.get("numeric", ()):
        yield column["name"], range(at, at := at + 1)
    for column in encoding.get("categorical", ()):
        yield column["name"], range(at, at := at + len(column["categories"]))
    for column in encoding.get("text", ()):
        yield column["name"], range(at, at := at + column["width"])


def _rounded(feature: float, column: Encoding) -> str:
    """A number of a column, to a thousandth of the column's standard deviation: features are kept no more exactly."""
    digits = 3 - math.floor(math.log10(column["std"]))
    return f"{round(feature * column['std'] + column['mean'], digits) + 0.0:.6g}"


def cells(encoding: Encoding, features: Sequence[float]) -> dict[str, str]:
    """What a row held, as a person reads it; free text cannot be told from its features and is left out.

    Args:
        encoding: `preprocess` of a run's configuration.
        features: The row as the network sees it.
    """
    found: dict[str, str] = {}
    for at, column in enumerate(encoding.get("numeric", ())):
        part = column.get("part")
        found[f"{column['name']}, {part}" if part else column["name"]] = _rounded(features[at], column)
    at = len(encoding.get("numeric", ()))
    for column in encoding.get("categorical", ()):
        names = column["categories"]
        here = [name for name, on in zip(names, features[at : at + len(names)], strict=True) if on > 0.5]
        found[column["name"]] = here[0] if here else OTHER
        at += len(names)
    return found
