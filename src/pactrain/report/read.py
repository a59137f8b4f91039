"""Reading a run folder for the report, without its weights."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pactrain.bounds.moment import Moment
from pactrain.certification.certificate import Certificate
from pactrain.runs.conformal import Calibration
from pactrain.runs.folder import read_history, read_moment
from pactrain.runs.result import Result
from pactrain.runs.sentences import data_name
from pactrain.runtime.errors import RunError
from pactrain.runtime.files import plain
from pactrain.runtime.untrusted import made_from, read_json

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
    """True if all numbers of the certificate follow from their inputs, and it is as it was made."""
    moment: Moment | None = None
    analysis: dict[str, Any] = field(default_factory=dict)
    """What is known of the model's answers, rows and columns."""
    calibration: Calibration | None = None

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


def read_run(path: str | Path, *, name: str | None = None) -> Run:
    """Read a run folder."""
    folder = Path(path)
    if not (folder / "config.json").exists():
        raise RunError(f"{folder} is not a run folder: it has no config.json; name a folder made by pactrain train")
    certificate = folder / "certificate.json"
    found = Certificate.read(certificate) if certificate.exists() else None
    return Run(
        name=name or folder.resolve().name,
        config=made_from(folder / "config.json", dict, read_json(folder / "config.json")),
        history=read_history(folder / "history.jsonl"),
        metrics=_if_there(folder / "metrics.json") or {},
        certificate=found,
        genuine=found is None or found.recheck(),
        moment=read_moment(folder),
        analysis=_if_there(folder / "analysis.json") or {},
        calibration=Calibration.load(folder) if (folder / "metrics.json").exists() else None,
    )


def run_of(result: Result) -> Run:
    """The run of a result in memory."""
    done = {"notes": result.notes, "interrupted": result.interrupted}
    return Run(
        name=result.path.resolve().name if result.path else data_name(result.config) or "your run",
        config=plain(result.config),
        history=plain(result.history),
        metrics=plain(result.metrics | done),
        certificate=result.certificate,
        genuine=result.certificate.recheck(),
        moment=result.moment,
        analysis=plain(result.analysis),
        calibration=result.calibration,
    )


def read_runs(paths: list[Path]) -> list[Run]:
    """Several run folders, each under a name of its own."""
    names = [path.resolve().name for path in paths]
    return [
        read_run(path, name=name if names.count(name) == 1 else str(path))
        for path, name in zip(paths, names, strict=True)
    ]


def _if_there(path: Path) -> dict[str, Any] | None:
    return made_from(path, dict, read_json(path)) if path.exists() else None
