"""Forgeries of a certificate: one leaf of its record changed, values and digest made to fit again."""

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from pactrain import Certificate, PactrainError
from pactrain.certification.certificate import FORMAT
from pactrain.certification.statement import Statement
from pactrain.cli.main import main
from pactrain.runtime.files import save_state

Record = dict[str, Any]


def pactrain(*words: Any) -> int:
    """The exit code of a command, run in this process."""
    try:
        main([str(w) for w in words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every leaf of a JSON value with its path, and every list that has items (whose items may be removed)."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield (*path, index), ...  # the item as a whole
            yield from leaves(part, (*path, index))
    else:
        yield path, value


def changes(path: tuple[Any, ...], value: Any) -> list[Any]:
    """What a forger may write instead of a leaf; an ellipsis stands for an item of a list, which is removed."""
    if value is ...:
        return [...]
    if path[-1] == "label":
        return [label for label in ("certified", "estimated", "heuristic") if label != value]
    if isinstance(value, str):
        return ["", f"{value} "] if value else ["stated"]
    if value is None:
        return [0.5]
    return [value * 2 if value else 1, *([value / 2] if isinstance(value, float) and value else [value + 1])]


def forged(record: Record, path: tuple[Any, ...], value: Any) -> Record:
    """The record with another value at `path`; the statements' values and the digest follow."""
    out = copy.deepcopy(record)
    holder = out
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return consistent(out, changed=path)


def consistent(record: Record, *, changed: tuple[Any, ...] = ()) -> Record:
    """Values that follow from the inputs and a digest that fits, as far as a record allows it."""
    for i, s in enumerate(record["statements"]):
        if not changed or changed[:3] == ("statements", i, "inputs"):
            with contextlib.suppress(PactrainError):
                s["value"] = Statement(**s).recompute()
    if changed != ("digest",) and record["format"] == FORMAT:
        with contextlib.suppress(PactrainError):
            unsigned = Certificate.from_dict(record | {"digest": "?"})
            record["digest"] = unsigned._fingerprint()
    return record


def write_posterior(run: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Put another posterior into a run folder, whose own note of its digest follows."""
    file = run / "metrics.json"
    metrics = json.loads(file.read_text())
    metrics["weights"]["posterior.safetensors"] = save_state(run / "posterior.safetensors", tensors, values)
    file.write_text(json.dumps(metrics))


def read(run: Path) -> Record:
    """The record in a run folder."""
    record: Record = json.loads((run / "certificate.json").read_text())
    return record
