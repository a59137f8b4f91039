"""trackio: epochs as metrics, the certificate as a text."""

import json
from collections.abc import Mapping
from typing import Any

from pactrain.integrations.tracker import Tracker
from pactrain.runs.result import Result
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import plain


class Trackio(Tracker):
    """A callback for `fit` that keeps a run with trackio.

    Args:
        project: Name of the project.
        **options: As `trackio.init` takes them: name, config, space_id, resume="must" to go on with a run, ….
    """

    def __init__(self, project: str = "pactrain", **options: Any) -> None:
        try:
            import trackio
        except ImportError as error:
            raise PactrainError("trackio runs need trackio: pip install 'pactrain[trackio]'") from error
        self._trackio, self._options = trackio, options | {"project": project}
        self._run: Any = None

    @property
    def run(self) -> Any:
        """The run of trackio, which begins with the first use."""
        if self._run is None:
            self._run = self._trackio.init(**self._options)
        return self._run

    def log(self, values: Mapping[str, float], epoch: int) -> None:
        """The numbers, the epoch as their step."""
        self.run.log(dict(values), step=epoch)

    def keep(self, result: Result) -> None:
        """The printed certificate and the configuration as texts; trackio takes settings only before the first epoch."""
        texts = {"certificate": str(result.certificate), "config": json.dumps(plain(result.config), indent=1)}
        shown = {key: self._trackio.Markdown(f"```\n{text}\n```") for key, text in texts.items()}
        self.run.log(shown, step=len(result.history))

    def close(self, *, failed: bool) -> None:
        """Finish the run; trackio keeps no mark of failed ones."""
        if self._run is not None:
            self._run.finish()
            self._run = None
