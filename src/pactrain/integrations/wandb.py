"""Weights & Biases: epochs as history, the configuration as config, the certificate in the summary and as a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pactrain.integrations.tracker import Tracker
from pactrain.runs.result import Result
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import plain, write_atomic


class WandB(Tracker):
    """A callback for `fit` that keeps a run with Weights & Biases.

    Args:
        **options: As `wandb.init` takes them: project, name, mode="offline", dir, id and resume to go on with a run, ….
    """

    def __init__(self, **options: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise PactrainError("Weights & Biases runs need wandb: pip install 'pactrain[wandb]'") from error
        self._init, self._options = wandb.init, options
        self._run: Any = None

    @property
    def run(self) -> Any:
        """The run of Weights & Biases, which begins with the first use."""
        if self._run is None:
            self._run = self._init(**self._options)
        return self._run

    def log(self, values: Mapping[str, float], epoch: int) -> None:
        """One line of history, the epoch as its step."""
        self.run.log(dict(values), step=epoch)

    def keep(self, result: Result) -> None:
        """The configuration, the printed certificate, and certificate.json among the run's files."""
        self.run.config.update(plain(result.config))
        self.run.summary["certificate"] = str(result.certificate)
        file = Path(self.run.dir) / "certificate.json"
        write_atomic(file, json.dumps(plain(result.certificate.to_dict()), indent=1) + "\n")
        self.run.save(str(file), base_path=self.run.dir, policy="now")

    def close(self, *, failed: bool) -> None:
        """Finish the run, with an exit code."""
        if self._run is not None:
            self._run.finish(exit_code=int(failed))
            self._run = None
