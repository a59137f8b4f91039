"""What a report is made from: a run folder, read without its weights."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pactrain.bounds.moment import Moment
from pactrain.certification.certificate import Certificate
from pactrain.runs.folder import read_json
from pactrain.runtime.errors import RunError

Record = dict[str, Any]

SCORES = ("accuracy", "rmse", "loss")
"""Measures of a network, the one that people ask for first."""


@dataclass(frozen=True)
class Run:
    """One run as it stands on disk; a run that is still going has no certificate yet."""

    name: str
    config: dict[str, Any]
    history: list[Record] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    certificate: Certificate | None = None
    genuine: bool = True
    """Do all numbers of the certificate follow from their inputs, and is it as it was made?"""
    moment: Moment | None = None

    @property
    def data(self) -> str:
        """What the data is called, as far as the run knows."""
        data = self.config.get("data")
        given = data.get("name") if isinstance(data, dict) else None
        return Path(str(given)).name if given else "your own data"

    @property
    def model(self) -> str:
        """What the network is called, as far as the run knows."""
        return str(self.config.get("model", "your own network"))

    @property
    def weights(self) -> int:
        """Number of random weights."""
        return sum(self.config.get("groups", {}).values())

    @property
    def score(self) -> str:
        """The measure by which the network is judged."""
        return next(k for k in SCORES if k in self.scores("train") or k == "loss")

    def scores(self, part: str) -> dict[str, float]:
        """Final scores on "train" or "test"; of the last epoch while the run is going, empty if there are none."""
        last = self.history[-1] if self.history else {}
        return self.metrics.get(part) or last.get(part) or {}

    @property
    def stage1_epochs(self) -> int:
        """Epochs of the first stage."""
        return sum(1 for record in self.history if record["stage"] == 1)

    @property
    def log_std(self) -> float | None:
        """Where the bound reads the moment at the end: the largest log-std of the prior, or their mean."""
        if not self.history:
            return None
        values = [math.log(std) for std in self.history[-1]["prior_std"].values()]
        return max(values) if self.config["rules"]["at"] == "max" else sum(values) / len(values)


def read_run(path: str | Path, *, name: str | None = None, metrics: dict[str, Any] | None = None) -> Run:
    """Read a run folder; `metrics` stands for a metrics.json that is still to be written."""
    folder = Path(path)
    if not (folder / "config.json").exists():
        raise RunError(f"{folder} is not a run folder: it has no config.json; name a folder made by pactrain train")
    moment, certificate = folder / "moment.json", folder / "certificate.json"
    done = metrics if metrics is not None else _if_there(folder / "metrics.json")
    found = Certificate.read(certificate) if certificate.exists() else None
    return Run(
        name=name or folder.resolve().name,
        config=read_json(folder / "config.json"),
        history=_history(folder / "history.jsonl"),
        metrics=done or {},
        certificate=found,
        genuine=found is None or found.recheck(),
        moment=Moment.from_dict(read_json(moment)) if moment.exists() else None,
    )


def read_runs(paths: list[Path]) -> list[Run]:
    """Several run folders, each under a name of its own."""
    names = [path.resolve().name for path in paths]
    return [
        read_run(path, name=name if names.count(name) == 1 else str(path))
        for path, name in zip(paths, names, strict=True)
    ]


def _if_there(path: Path) -> Any:
    return read_json(path) if path.exists() else None


def _history(path: Path) -> list[Record]:
    """The epochs; the last line of a run that is going on, or was killed, may be half written."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            if number < len(lines):
                raise RunError(f"{path}, line {number}, cannot be read: {error}") from error
    return records
