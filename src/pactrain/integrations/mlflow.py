"""MLflow: epochs as metrics, the configuration as parameters, the certificate as an artifact."""

import re
import time
from collections.abc import Mapping
from typing import Any

from pactrain.integrations.tracker import Tracker, flat
from pactrain.runs.result import Result
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import plain

LONGEST = 500
"""Characters of a parameter, which MLflow limits."""


class MLflow(Tracker):
    """A callback for `fit` that keeps a run with MLflow.

    Args:
        experiment: Name of the experiment, which is made if there is none.
        name: Name of the run; by default MLflow's.
        uri: Where the runs are: a server, or "sqlite:///mlflow.db"; by default MLflow's own setting.
        run_id: A run of MLflow's to go on with, as after `fit(..., resume=True)`.
    """

    def __init__(
        self,
        experiment: str = "pactrain",
        *,
        name: str | None = None,
        uri: str | None = None,
        run_id: str | None = None,
    ) -> None:
        try:
            from mlflow import MlflowClient
            from mlflow.entities import Metric
        except ImportError as error:
            raise PactrainError("MLflow runs need mlflow: pip install 'pactrain[mlflow]'") from error
        self.experiment, self.name, self.run_id = experiment, name, run_id
        self._client: Any = MlflowClient(tracking_uri=uri)
        self._metric: Any = Metric

    @property
    def _id(self) -> str:
        """MLflow's name for the run, which begins with the first use."""
        if self.run_id is None:
            found = self._client.get_experiment_by_name(self.experiment)
            home = found.experiment_id if found else self._client.create_experiment(self.experiment)
            self.run_id = str(self._client.create_run(home, run_name=self.name).info.run_id)
        return self.run_id

    def log(self, values: Mapping[str, float], epoch: int) -> None:
        """One metric per number, the epoch as its step."""
        now = int(1000 * time.time())
        metrics = [self._metric(allowed(key), float(value), now, epoch) for key, value in values.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def keep(self, result: Result) -> None:
        """Parameters, and the certificate as certificate.json."""
        for key, value in flat(plain(result.config)).items():
            self._client.log_param(self._id, allowed(key), str(value)[:LONGEST])
        self._client.log_dict(self._id, result.certificate.to_dict(), "certificate.json")
        self._client.log_text(self._id, f"{result.certificate}\n", "certificate.txt")

    def close(self, *, failed: bool) -> None:
        """Say how the run ended."""
        if self.run_id is not None:
            self._client.set_terminated(self.run_id, status="FAILED" if failed else "FINISHED")


def allowed(name: str) -> str:
    """A name without the characters that MLflow refuses.

    >>> allowed("test/f1 (macro)")
    'test/f1 _macro_'
    """
    return re.sub(r"[^\w\-. /]", "_", name)
