"""The run folder: everything a run leaves behind, and all that is needed to go on after a crash."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError
from torch import nn

from pactrain.bounds.moment import Moment
from pactrain.certification.certificate import Certificate
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.runs.conformal import FILE, Calibration
from pactrain.runs.weight_files import MODEL, POSTERIOR, model_tensors, posterior_tensors
from pactrain.runtime.errors import RunError
from pactrain.runtime.files import PART, load_state, plain, remove_parts, save_state, write_atomic, write_json
from pactrain.runtime.gave_up import noted
from pactrain.runtime.untrusted import LEAST_LIMIT, made_from, parse_json, read_bounded, read_json
from pactrain.training.trainer import Trainer

CHECKPOINT_SECONDS = 5.0
"""Time between checkpoints: what a crash may cost."""

LOCK = ".lock"
"""A file that the process of a run holds while the run is going; the system frees it if the process is killed."""

IGNORED_ON_RESUME = ("versions", "threads", "machine")
CHANGED = {"data_digest": "the data has changed since", "model_digest": "the source of the network has changed since"}
"""What is said of a setting that nobody types."""


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds_before = 0.0
        self._last_checkpoint = time.monotonic()
        self._digests: dict[str, str] = {}

    @property
    def _checkpoint(self) -> Path:
        return self.path / "checkpoint" / "state.safetensors"

    @classmethod
    @contextmanager
    def open(cls, path: str | Path, config: dict[str, Any], *, resume: bool) -> Iterator["RunFolder"]:
        """A new run folder, or an unfinished one to go on with; no other run can use it until the block ends."""
        folder = cls(Path(path))
        with folder._errors():
            if not resume:
                check_free(folder.path)
        with ExitStack() as stack:
            with folder._errors():
                stack.enter_context(_held(folder.path))
                folder._begin(config)
            try:
                yield folder
            except KeyboardInterrupt as error:
                if folder.checkpoint() is not None:
                    kept = f"the training is kept in {path} up to its last checkpoint"
                    error.add_note(f"{kept}; go on with resume=True (--resume)")
                raise

    def _begin(self, config: dict[str, Any]) -> None:
        """Write the configuration of a new run, or compare it with that of the run to go on with."""
        kept = self.path / "config.json"
        if is_complete(self.path):
            raise RunError(f"the run in {self.path} is complete; there is nothing to resume")
        remove_parts(self.path)
        if kept.exists():
            made_from(kept, lambda before: _same_config(before, plain(config), self.path), read_json(kept))
            (self.path / "metrics.json").unlink(missing_ok=True)  # of an interrupted run; written again at the end
        else:
            write_json(kept, config)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What goes wrong with files in the block, as an error that says what is kept and how to go on."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            way_out = "nothing of this run is kept: choose another folder with out= (--out), or make this one usable"
            if self.checkpoint() is not None:
                way_out = (
                    "the last checkpoint is kept there: make the folder usable again (space, access), then go on with "
                    "resume=True (--resume)"
                )
            raise RunError(f"the run folder {self.path} cannot be used ({error}); {way_out}") from error

    def write(self, name: str, values: Mapping[str, Any]) -> None:
        """Write one more document."""
        with self._errors():
            write_json(self.path / name, dict(values))

    def moment(self) -> Moment | None:
        """The scan, if it was completed."""
        return read_moment(self.path)

    def write_moment(self, moment: Moment) -> None:
        """Keep the scan."""
        with self._errors():
            write_atomic(self.path / "moment.json", json.dumps(moment.to_dict()) + "\n")

    def blocks(self) -> int:
        """How many blocks of a progressive certificate had been met by the last checkpoint."""
        if not self._checkpoint.exists():
            return 0
        values = load_state(self._checkpoint)[1]
        return made_from(self._checkpoint, lambda state: len(state["progress"]["blocks"]), values)

    def restore(self, trainer: Trainer) -> list[dict[str, Any]]:
        """Put the trainer where the last checkpoint left it; the history up to there."""
        file = self.path / "history.jsonl"
        with self._errors():
            if not self._checkpoint.exists():
                write_atomic(file, "")
                return []
            tensors, values = load_state(self._checkpoint)
            made_from(self._checkpoint, lambda state: trainer.load(*state), (tensors, values))
            self.seconds_before = trainer.progress.seconds_before + trainer.progress.seconds
            records = read_history(file)[: trainer.progress.epoch]
            if len(records) < trainer.progress.epoch:
                raise RunError(f"{file} has lost lines that the checkpoint knows of; start again in a new folder")
            write_atomic(file, "".join(json.dumps(record) + "\n" for record in records))
            return records

    def keep(self, record: dict[str, Any], trainer: Trainer) -> None:
        """Append one epoch to the history, and now and then a checkpoint."""
        with self._errors():
            with (self.path / "history.jsonl").open("a") as file:
                file.write(json.dumps(plain(record), allow_nan=False) + "\n")
            now = time.monotonic()
            if trainer.progress.done or now - self._last_checkpoint >= CHECKPOINT_SECONDS:
                save_state(self._checkpoint, *trainer.state())
                self._last_checkpoint = now

    def finish(
        self, model: nn.Module, posterior: Posterior, earlier: Mapping[str, Snapshot], certificate: Certificate
    ) -> None:
        """Write the network, its posterior and what was proved."""
        with self._errors():
            self._digests = {
                MODEL: save_state(self.path / MODEL, model_tensors(model), {}),
                POSTERIOR: save_state(self.path / POSTERIOR, *posterior_tensors(posterior, earlier)),
            }
            write_json(self.path / "certificate.json", certificate.to_dict())

    def keep_calibration(self, calibration: Calibration) -> None:
        """Keep what intervals and sets are made from."""
        with self._errors():
            self._digests[FILE] = calibration.save(self.path)

    def complete(self, metrics: Mapping[str, Any], *, interrupted: bool) -> None:
        """Write `metrics.json`, the sign that the run is complete; the checkpoint of an interrupted one stays."""
        with self._errors():
            write_json(self.path / "metrics.json", {**metrics, "weights": self._digests})
        if not interrupted:
            shutil.rmtree(self.path / "checkpoint", ignore_errors=True)

    def checkpoint(self) -> Path | None:
        """The folder of the last checkpoint, if there is one."""
        return self._checkpoint.parent if self._checkpoint.exists() else None


def check_free(path: Path) -> None:
    """Refuse a folder that holds something: a new run would destroy it."""
    try:
        if (path / LOCK).exists():  # a run is going on, or its process was killed
            with _held(path):
                pass
        free = not path.exists() or (path.is_dir() and all(file.name.endswith(PART) for file in path.iterdir()))
    except (OSError, ValueError) as error:
        raise RunError(f"{str(path)!r} cannot be used as a run folder ({error}); choose another") from error
    if not free:
        if not path.is_dir():
            raise RunError(f"{path} is no folder; choose another for the run")
        raise RunError(f"{path} already exists and is not empty; resume it (resume=True, --resume) or choose another")


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep all other runs out of a folder."""
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(
            f"a run is still going on in {path}, in another process or in this one; two would overwrite each other's "
            "files: wait for its end or stop it, or choose another folder"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # a lock that nobody holds is free, even if its file cannot be removed
            (path / LOCK).unlink(missing_ok=True)
        lock.release()


def read_completed(path: Path) -> tuple[dict[str, Any], dict[str, Any], Certificate]:
    """Configuration, metrics and certificate of a completed run.

    Raises:
        RunError: The run is not complete, or its files are not as pactrain writes them.
    """
    if not (path / "metrics.json").exists():
        raise RunError(f"{path} holds no completed run; name a folder that fit(out=…) or pactrain train has written")
    config, metrics = (
        made_from(path / name, dict[str, Any], read_json(path / name)) for name in ("config.json", "metrics.json")
    )
    return config, metrics, Certificate.read(path / "certificate.json")


def is_complete(path: Path) -> bool:
    """True if the run came to its end, not cut short by anything."""
    file = path / "metrics.json"
    return file.exists() and not made_from(file, dict, read_json(file)).get("interrupted")


def read_moment(path: Path) -> Moment | None:
    """The scan that a run folder holds, None if there is none yet."""
    file = path / "moment.json"
    return made_from(file, Moment.from_dict, read_json(file, nan=True)) if file.exists() else None


def read_history(path: Path) -> list[dict[str, Any]]:
    """The epochs; the last line of a run that is going on, or was killed, may be half written."""
    if not path.exists():
        return []
    records = []
    try:
        lines = read_bounded(path, LEAST_LIMIT).decode().splitlines()
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            records.append(dict(parse_json(line)))
        except (ValueError, TypeError, RecursionError) as error:
            if number < len(lines):
                raise RunError(f"{path}, line {number}, cannot be read: {error}") from error
    return records


def _same_config(kept: dict[str, Any], asked: dict[str, Any], path: Path) -> None:
    different = [
        key
        for key in sorted(kept.keys() | asked.keys())
        if key not in IGNORED_ON_RESUME and kept.get(key) != asked.get(key)
    ]
    if different:
        shown = "; ".join(
            CHANGED.get(key, f"{key}: {kept.get(key)!r:.80} there, {asked.get(key)!r:.80} now") for key in different[:3]
        )
        raise RunError(f"the run in {path} was started with other settings ({shown}); resume it with the same ones")
    before, now = kept["versions"], asked["versions"]
    for name in sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
        noted(
            f"The run was started with {name} {before.get(name)} and resumed with {now.get(name)}: the rest of it may be "
            "rounded differently."
        )
