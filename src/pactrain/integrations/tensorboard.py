"""TensorBoard: the scalars of every epoch as standard event files."""

from pathlib import Path
from typing import Any

from pactrain.runtime.errors import PactrainError
from pactrain.runtime.events import Event
from pactrain.training.history import is_fresh

TERMS = ("risk", "kl_term", "complexity", "kl", "gamma")


class TensorBoard:
    """A callback for `fit` that writes event files to `folder`.

        with TensorBoard("runs/mine/tensorboard") as board:
            pactrain.fit(model, data, out="runs/mine", callbacks=[board])

    A resumed run goes on in a new file, which tells TensorBoard to drop what the crash had left beyond the checkpoint.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise PactrainError("event files need tensorboard: pip install 'pactrain[tensorboard]'") from error
        self.folder = Path(folder)
        self._make = SummaryWriter
        self._writer: SummaryWriter | None = None

    def __call__(self, event: Event) -> None:
        """Write one epoch.  The folder is made only now: a run folder must be empty when a run begins."""
        if event.phase != "train":
            return
        if self._writer is None:
            self._writer = self._make(str(self.folder), purge_step=event.done)
        for name, value in scalars(event.values).items():
            self._writer.add_scalar(name, value, event.done)
        self._writer.flush()  # a killed run must not lose epochs that its checkpoint has

    def __enter__(self) -> "TensorBoard":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def scalars(record: dict[str, Any]) -> dict[str, float]:
    """The numbers of an epoch under the names that TensorBoard groups them by."""
    measured = ("train", "test", "prior_std", "posterior_std") if is_fresh(record) else ()
    values = {f"{part}/{k}": v for part in measured for k, v in (record[part] or {}).items()}
    values |= {"bound/total": record["bound"]} | {f"bound/{k}": record[k] for k in TERMS}
    return values | {"stage": record["stage"], "seconds": record["seconds"]}
