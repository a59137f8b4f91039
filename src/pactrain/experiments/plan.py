"""One run of a plan: what it is, what identifies it, and how it is carried out in a worker."""

import hashlib
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import plain
from pactrain.runtime.versions import versions

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Run:
    """A call `function(seed=seed, **settings)` that returns a dict of metrics.

    function: "package.module:name" of a top-level function that workers can import.
    settings: its arguments, as JSON can hold them.
    data:     what identifies the data beyond the settings (the digest of a file, say); not passed on.
    kind:     runs of one kind take about as long as each other; by default those of one function.  Not part of the identity.
    folder:   where the function, called with `folder=` then, keeps what it needs to go on after a stop; removed once the result is
              stored.  Not part of the identity.
    """

    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    data: str = ""
    kind: str = ""
    folder: str = ""

    def __post_init__(self) -> None:
        """Refuse what could not be stored."""
        module, _, name = self.function.partition(":")
        if not module or not name.isidentifier():
            raise PactrainError(f"{self.function!r} does not name a function; write package.module:function")
        try:
            json.dumps(dict(self.settings), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise PactrainError(f"the settings of a run of {self.function} are not JSON: {error}") from None

    @property
    def group(self) -> str:
        """The kind."""
        return self.kind or self.function

    @property
    def config(self) -> dict[str, Any]:
        """Everything that determines the run."""
        return {
            "function": self.function,
            "settings": json.loads(json.dumps(dict(self.settings))),
            "seed": self.seed,
            "data": self.data,
        }

    @property
    def task(self) -> dict[str, Any]:
        """What a worker gets."""
        return self.config | ({"folder": self.folder} if self.folder else {})

    @property
    def identity(self) -> str:
        """Fingerprint of the configuration, equal on every machine and in every session."""
        text = json.dumps(self.config, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What a worker returns: metrics, or the text of an error."""

    metrics: dict[str, Any] | None
    error: str | None
    seconds: float
    versions: dict[str, str] = field(default_factory=dict)


def execute(task: dict[str, Any]) -> Outcome:
    """Carry out one run in this process, on one thread.  Whatever it raises becomes the outcome's error."""
    started = time.perf_counter()
    metrics, error = None, None
    try:
        function = _import(task["function"])
        kept = {"folder": task["folder"]} if "folder" in task else {}
        _one_thread()
        started = time.perf_counter()  # loading libraries is the worker's affair, once, and not the run's
        metrics = json.loads(json.dumps(plain(function(seed=task["seed"], **task["settings"], **kept))))
        if not isinstance(metrics, dict):
            raise PactrainError(f"{task['function']} returned {type(metrics).__name__}, not a dict of metrics")
    except (Exception, SystemExit):
        metrics, error = None, traceback.format_exc()
    return Outcome(metrics, error, time.perf_counter() - started, versions())


def lost(why: str) -> Outcome:
    """The outcome of a run whose worker did not come back."""
    return Outcome(None, why, 0.0)


def _import(name: str) -> Callable[..., Any]:
    for variable in THREAD_VARIABLES:  # read when the libraries are first loaded
        os.environ.setdefault(variable, "1")
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _one_thread() -> None:
    torch = sys.modules.get("torch")  # a worker that needs no torch is not made to load it
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
