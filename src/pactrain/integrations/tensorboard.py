"""TensorBoard: the scalars of every epoch as standard event files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pactrain.integrations.tracker import Tracker
from pactrain.runs.result import Result
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import plain

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoard(Tracker):
    """A callback for `fit` that writes event files to `folder`.

        with TensorBoard("runs/mine/tensorboard") as board:
            pactrain.fit(model, data, out="runs/mine", callbacks=[board])

    A resumed run goes on in a new file, which makes TensorBoard drop what a crash had left beyond the checkpoint.

    Args:
        folder: Where the event files go; made by the first epoch, since a run folder must be empty when a run begins.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise PactrainError("event files need tensorboard: pip install 'pactrain[tensorboard]'") from error
        self.folder = Path(folder)
        self._make = SummaryWriter
        self._writer: SummaryWriter | None = None

    def log(self, values: Mapping[str, float], epoch: int) -> None:
        """Write the numbers of one epoch."""
        writer = self._opened(epoch)
        for name, value in values.items():
            writer.add_scalar(name, value, epoch)
        writer.flush()  # a killed run must not lose epochs that its checkpoint has

    def keep(self, result: Result) -> None:
        """Write configuration and certificate as texts."""
        texts = {"certificate": str(result.certificate), "config": json.dumps(plain(result.config), indent=1)}
        writer = self._opened(len(result.history))
        for name, text in texts.items():
            writer.add_text(name, "\n".join(f"    {line}" for line in text.splitlines()), len(result.history))

    def close(self, *, failed: bool) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _opened(self, epoch: int) -> "SummaryWriter":
        if self._writer is None:
            self._writer = self._make(str(self.folder), purge_step=epoch)
        return self._writer
