"""Checks of arguments, each with an error that names the argument, its value, and what it must be."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from pactrain.runtime.errors import PactrainError

SEEDS = 2**63
"""Torch's generators take seeds below this."""

LEAST_SHARE = 1e-100
"""Parts of δ, as small as they become, are still numbers from here on."""


def check_share(name: str, value: Any, meaning: str) -> float:
    """Make a plain number of a share, which may be one of numpy's; raise PactrainError unless it is strictly between 0 and 1."""
    if not is_real(value) or not 0 < value < 1:
        raise PactrainError(f"{name}={value!r:.60} must lie strictly between 0 and 1; {meaning}")
    if value < LEAST_SHARE:
        raise PactrainError(f"{name}={value!r:.60} is below {LEAST_SHARE}, too small to compute with; {meaning}")
    return float(value)


def check_whole(name: str, value: Any, least: int, most: float = math.inf) -> None:
    """Raise PactrainError unless a value is a whole number in its range."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        upper = "" if math.isinf(most) else f" and at most {most:,}"
        raise PactrainError(f"{name}={value!r:.60} must be a whole number, at least {least:,}{upper}")


def check_seed(seed: Any) -> int:
    """Make a plain number of a seed, which may be one of numpy's; raise PactrainError unless it can be one."""
    check_whole("seed", seed, -SEEDS, SEEDS - 1)
    return int(seed)


def check_texts(name: str, values: Any, kinds: type | tuple[type, ...], example: str) -> None:
    """Raise PactrainError unless a value is several of something, and not one text, whose letters would be taken for them."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise PactrainError(f"{name}={values!r:.60} must be several: write {name}=[{example}]")
    if odd := [value for value in values if not isinstance(value, kinds)]:
        raise PactrainError(f"{name} holds {odd[0]!r:.60}; write {name}=[{example}]")


def check_callables(name: str, values: Any, example: str) -> None:
    """Raise PactrainError unless a value is several functions."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise PactrainError(f"{name}={values!r:.60} must be several functions: write {name}=[{example}]")
    if odd := [value for value in values if not callable(value)]:
        raise PactrainError(f"{name} holds {odd[0]!r:.60}, which cannot be called")


def is_real(value: Any) -> bool:
    """True for a number, of Python or numpy, that is no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)
