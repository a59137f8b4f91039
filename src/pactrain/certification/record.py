"""What the JSON record of a certificate must look like before any of its numbers is computed again, and where two records differ.

A record comes from a file, so everything about it may be wrong.  The fields are those of docs/record.md.
"""

import math
import re
from typing import Any

from pactrain.runtime.errors import PactrainError

_RECORD: dict[str, type | tuple[type, ...]] = {
    "format": int, "statements": list, "delta": (int, float), "n": int, "loss": str, "seed": int, "prior_source": str,
    "caveats": list, "notes": list, "budget": dict, "measured": dict, "hashes": dict, "versions": dict, "digest": str,
}  # fmt: skip
_STATEMENT: dict[str, type | tuple[type, ...]] = {
    "quantity": str, "predictor": str, "label": str, "bound": str, "value": (int, float), "inputs": dict, "prior": str,
    "when": str, "constant_answer": (int, float, type(None)),
}  # fmt: skip
_CAVEAT: dict[str, type | tuple[type, ...]] = {"reason": str, "label": str}

_LABELS = ("certified", "estimated", "heuristic")

_LEAST = dict.fromkeys(("kl", "prior_nats", "errors", "mean_size", "mean_variance", "largest_kl", "largest_k"), 0.0)
_LEAST |= dict.fromkeys(("n", "weights", "groups", "bins", "choices"), 1.0)
_LEAST |= dict.fromkeys(
    ("values", "scale", "limit", "u", "gamma", "gamma_min", "gamma_max", "confidence_nats"), math.ulp(0.0)
)
"""Smallest possible value of an input, in every formula that has it."""

_WHOLE = ("n", "errors", "weights", "groups", "bins", "choices", "parts")

NUMBER = r"\d{1,300}(?:\.\d{1,300})?(?:e[-+]\d{1,2})?"
"""A number that is not negative, as Python writes it."""


def check_record(values: Any) -> None:
    """Raise PactrainError unless the fields are there, no others are, and all have the right type and range."""
    _fields(values, _RECORD, "the certificate")
    for caveat in values["caveats"]:
        _fields(caveat, _CAVEAT, "a caveat")
        _expect(caveat["label"] in _LABELS, f"a caveat has the label {caveat['label']!r}")
    for number, s in enumerate(values["statements"], 1):
        where = f"statement {number}"
        _fields(s, _STATEMENT, where)
        _expect(s["label"] in _LABELS, f"{where} has the label {s['label']!r}")
        for name, x in s["inputs"].items():
            _input(name, x, where)


def _fields(holder: Any, types: dict[str, type | tuple[type, ...]], where: str) -> None:
    _expect(isinstance(holder, dict), f"{where} is not an object")
    odd = sorted(map(str, holder.keys() ^ types.keys()))
    _expect(not odd, f"{where} lacks, or should not have: {', '.join(odd)}")
    for name, kind in types.items():
        value = holder[name]
        right = isinstance(value, kind) and not isinstance(value, bool)
        _expect(right and _finite(value), f"{name} of {where} cannot be {value!r:.40}")


def _input(name: str, x: Any, where: str) -> None:
    if name == "counts":
        _expect(isinstance(x, str) and _is_histogram(x), f"counts of {where} are no histogram: {x!r:.40}")
        return
    if name == "blocks":
        _expect(
            isinstance(x, str) and _are_blocks(x), f"blocks of {where} are not numbers of rows and errors: {x!r:.40}"
        )
        return
    if name == "levels":
        _expect(isinstance(x, str) and _are_levels(x), f"levels of {where} are not as they are written: {x!r:.40}")
        return
    number = isinstance(x, int | float) and not isinstance(x, bool) and _finite(x)
    _expect(number, f"input {name} of {where} is not a number: {x!r:.40}")
    _expect(x >= _LEAST.get(name, -math.inf), f"input {name} of {where} cannot be {x!r}")
    _expect(name not in _WHOLE or x == int(x), f"input {name} of {where} is not a whole number: {x!r}")


def _is_histogram(text: str) -> bool:
    """True for numbers of bins with counts, "0:490 3:10": bins in increasing order, no count of zero."""
    if not re.fullmatch(r"(0|[1-9]\d{0,8}):[1-9]\d{0,14}( (0|[1-9]\d{0,8}):[1-9]\d{0,14})*", text, re.ASCII):
        return False
    bins = [int(part.split(":")[0]) for part in text.split(" ")]
    return bins == sorted(set(bins))


def _are_blocks(text: str) -> bool:
    """True for rows with errors, "90:1 45:0": no block is empty, or has more errors than rows."""
    if not re.fullmatch(r"[1-9]\d{0,14}:(0|[1-9]\d{0,14})( [1-9]\d{0,14}:(0|[1-9]\d{0,14}))*", text, re.ASCII):
        return False
    return all(int(errors) <= int(rows) for rows, errors in (part.split(":") for part in text.split(" ")))


def _are_levels(text: str) -> bool:
    """True for levels "8;0.5;0.0;8.0;1;0:7 1:1 / …": rows, two numbers of nats, values, bins, histograms."""
    for part in text.split(" / "):
        found = re.fullmatch(rf"[1-9]\d{{0,9}};{NUMBER};{NUMBER};{NUMBER};([1-9]\d{{0,8}});([0-9: ;]+)", part, re.ASCII)
        if not found or not all(map(_is_histogram, found[2].split(";"))):
            return False
        if max(int(pair.split(":")[0]) for pair in re.split("[ ;]", found[2])) > int(found[1]):
            return False
    return True


def _finite(value: Any) -> bool:
    """False for numbers that are infinite, or so large that formulas would overflow."""
    return not isinstance(value, int | float) or abs(value) < 1e300


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise PactrainError(f"this is not a certificate: {message}")


def differences(mine: Any, theirs: Any, path: str, tolerance: float) -> list[str]:
    """Where two JSON values differ, by path."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = list(dict.fromkeys([*mine, *theirs]))
        return [d for k in keys for d in differences(mine.get(k), theirs.get(k), f"{path}.{k}".lstrip("."), tolerance)]
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = enumerate(zip(mine, theirs, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{path}[{i}]", tolerance)]
    measured = isinstance(mine, float) and isinstance(theirs, float) and not _given(path)
    if measured and abs(mine - theirs) <= tolerance * max(1.0, abs(mine)):
        return []
    return [] if mine == theirs and type(mine) is type(theirs) else [f"{path}: stored {mine!r}, made again {theirs!r}"]


def _given(path: str) -> bool:
    """True for numbers that follow from the settings alone, so that every machine has the same: δ and its parts."""
    return path.startswith("budget.") or path.rpartition(".")[2].startswith("delta")
