"""What two checkouts must agree on, as plain JSON values: floats by `repr`, arrays by digest, without times and machine paths."""

import hashlib
import json
import os
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

Function = Callable[[], Any]
LEFT_OUT = ("seconds", "digest")  # the digest of a certificate covers pactrain's own version
CASES: dict[str, tuple[Function, bool]] = {}


def case(name: str, *, fails: bool = False, needs: str = "pactrain") -> Callable[[Function], Function]:
    """Enter a function into the table of cases; `fails`: its error is what is compared; `needs`: a package, without which it is left out."""

    def enter(function: Function) -> Function:
        if name in CASES:
            raise ValueError(f"two cases are named {name!r}")
        if find_spec(needs) is not None:
            CASES[name] = (function, fails)
        return function

    return enter


def cases(name: str, values: Iterable[Any], function: Callable[[Any], Any], *, needs: str = "pactrain") -> None:
    """One case for each of the values, which the name ends with."""
    for value in values:
        case(f"{name} {value}", needs=needs)(partial(function, value))


def plain(value: Any, key: str = "") -> Any:
    """Any value as JSON, so that two are equal only if every bit of their numbers is."""
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return _digest(f"{value.dtype}{list(value.shape)}", flat.numpy().tobytes())
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _digest(f"{value.dtype}{list(value.shape)}", value.tobytes())
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        left_out = (*LEFT_OUT, "pactrain") if key == "versions" else LEFT_OUT
        return {normal(str(k)): plain(v, str(k)) for k, v in value.items() if k not in left_out}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if value is None or isinstance(value, (bool, int)):
        return value
    return normal(str(value))


def _digest(kind: str, content: bytes) -> str:
    return f"{kind} {hashlib.sha256(content).hexdigest()[:24]}"


def normal(text: str) -> str:
    """A text without the names of this folder and of the checkout, times, and ids that are drawn at random."""
    for name, folder in (("<folder>", os.getcwd()), ("<checkout>", os.environ["COMPARED_CHECKOUT"])):
        text = text.replace(folder, name)
    text = re.sub(r"<checkout>/src/pactrain[\w/]*\.py(:\d+|\", line \d+)", "<source>", text)
    text = re.sub(r"\b\d+(\.\d+)?(?=([ \xa0]|\\u00a0)?(s|ms|min)\b)", "<time>", text)
    text = re.sub(r"\d+(:\d\d)+ left", "<time> left", text)
    text = re.sub(r"about \d+ min", "about <time> min", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?", "<date>", text)
    text = re.sub(r'"seconds": \d+(\.\d+)?', '"seconds": <time>', text)
    return re.sub(r'"digest": "\w+"', '"digest": <digest>', text)


def outcome(result: Any) -> dict[str, Any]:
    """Everything in what `fit` returned."""
    certificate = result.certificate
    return {
        "weights": dict(result.model.state_dict()),
        "posterior": posterior_values(result.posterior),
        "certificate": certificate.to_dict(),
        "printed": str(certificate).splitlines(),
        "consistent": certificate.recheck(),
        "history": result.history,
        "metrics": result.metrics,
        "notes": result.notes,
        "config": result.config,
        "moment": result.moment,
        "interrupted": result.interrupted,
        "earlier": result.earlier,
        "drawn": dict(result.drawn().state_dict()),
    }


def posterior_values(posterior: Any) -> dict[str, Any]:
    """The posterior's own tensors, its groups and what was said of its prior."""
    tensors = {name: getattr(posterior, name) for name in ("log_std", "prior_log_std", "prior_mean", "units")}
    told = {name: getattr(posterior, name) for name in ("groups", "names", "prior_fixed", "prior_source")}
    return tensors | told | {"unit_nats": posterior.unit_nats}


def files(folder: str | Path) -> dict[str, Any]:
    """The content of every file below a folder."""
    found = sorted(p for p in Path(folder).rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): content(p) for p in found}


def content(path: Path) -> Any:
    """What a file holds: values of JSON, tensors, lines of text; the rest by digest."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".safetensors":
        return {"bytes": _digest("file", path.read_bytes()), **load_file(path)}
    if path.suffix in (".csv", ".html", ".svg", ".txt"):
        return path.read_text().splitlines()
    return _digest("file", path.read_bytes())


def find(name: str, *, fits: Callable[[Any], bool] = callable) -> Any:
    """What is called `name` in one of pactrain's modules, whichever that is, and `fits`."""
    import pactrain

    found: dict[int, Any] = {}
    for module in pkgutil.walk_packages(pactrain.__path__, "pactrain."):
        if ".integrations" not in module.name and not module.name.endswith("__main__"):
            value = vars(import_module(module.name)).get(name)
            found |= {id(value): value} if value is not None and fits(value) else {}
    if len(found) != 1:
        raise LookupError(f"pactrain has {len(found)} things named {name!r} that fit, not one")
    return next(iter(found.values()))
