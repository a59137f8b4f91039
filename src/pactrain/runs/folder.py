"""The run folder: everything a run leaves behind, and all that is needed to go on after a crash."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.bounds.moment import Moment
from pactrain.certification.certificate import Certificate
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.runtime.errors import RunError
from pactrain.runtime.files import load_state, plain, save_state, write_atomic, write_json
from pactrain.training.trainer import Trainer

CHECKPOINT_SECONDS = 5.0
"""Time between checkpoints: what a crash may cost."""

IGNORED_ON_RESUME = ("versions", "threads", "machine")


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds_before = 0.0
        self._last_checkpoint = time.monotonic()

    @property
    def _checkpoint(self) -> Path:
        return self.path / "checkpoint" / "state.safetensors"

    @classmethod
    def open(cls, path: str | Path, config: dict[str, Any], *, resume: bool) -> "RunFolder":
        """A new run folder, or an unfinished one to go on with."""
        folder = cls(Path(path))
        kept = folder.path / "config.json"
        if not resume:
            check_free(folder.path)
        elif is_complete(folder.path):
            raise RunError(f"the run in {folder.path} is complete; there is nothing to resume")
        elif kept.exists():
            _same_config(read_json(kept), plain(config), folder.path)
            (folder.path / "metrics.json").unlink(missing_ok=True)  # of an interrupted run; it will be written again
            return folder
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json(kept, config)
        return folder

    def moment(self) -> Moment | None:
        """The scan, if it was completed."""
        file = self.path / "moment.json"
        return Moment.from_dict(read_json(file)) if file.exists() else None

    def write_moment(self, moment: Moment) -> None:
        """Keep the scan."""
        write_atomic(self.path / "moment.json", json.dumps(moment.to_dict()) + "\n")

    def restore(self, trainer: Trainer) -> list[dict[str, Any]]:
        """Put the trainer where the last checkpoint left it; the history up to there."""
        file = self.path / "history.jsonl"
        if not self._checkpoint.exists():
            write_atomic(file, "")
            return []
        tensors, values = load_state(self._checkpoint)
        trainer.load(tensors, values)
        self.seconds_before = trainer.progress.seconds
        lines = file.read_text().splitlines()[: trainer.progress.epoch]
        if len(lines) < trainer.progress.epoch:
            raise RunError(f"{file} has lost lines that the checkpoint knows of; start again in a new folder")
        write_atomic(file, "".join(f"{line}\n" for line in lines))
        return [json.loads(line) for line in lines]

    def keep(self, record: dict[str, Any], trainer: Trainer) -> None:
        """Append one epoch to the history, and now and then a checkpoint."""
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
        save_state(self.path / "model.safetensors", model_tensors(model), {})
        save_state(self.path / "posterior.safetensors", *posterior_tensors(posterior, earlier))
        write_json(self.path / "certificate.json", certificate.to_dict())

    def complete(self, metrics: Mapping[str, Any], *, interrupted: bool) -> None:
        """Write `metrics.json`, the sign that the run is complete; the checkpoint of an interrupted one stays."""
        write_json(self.path / "metrics.json", dict(metrics))
        if not interrupted:
            shutil.rmtree(self.path / "checkpoint", ignore_errors=True)

    def has_checkpoint(self) -> bool:
        """Is there a state to go back to?"""
        return self._checkpoint.exists()


def check_free(path: Path) -> None:
    """Refuse a folder that holds something: a new run would destroy it."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(f"{path} already exists and is not empty; resume it (resume=True, --resume) or choose another")


def is_complete(path: Path) -> bool:
    """Did the run come to its end, not cut short by anything?"""
    file = path / "metrics.json"
    return file.exists() and not read_json(file).get("interrupted")


def read_json(path: Path) -> Any:
    """A JSON file of a run folder."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The network's own `state_dict`, keys unchanged."""
    plain_model = getattr(model, "_orig_mod", model)  # torch.compile wraps the user's own module
    return {k: v for k, v in plain_model.state_dict().items() if isinstance(v, Tensor)}


def posterior_tensors(
    posterior: Posterior, earlier: Mapping[str, Snapshot]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Log-stds and prior means under the parameter's names, and the prior; posteriors of earlier moments, flat."""
    tensors = {"prior_log_std": posterior.prior_log_std.data}
    for name, at in zip(posterior.names, posterior.parameter_slices, strict=True):
        shape = posterior.model.get_parameter(name).shape
        own = name.removeprefix("_orig_mod.")
        tensors[f"log_std/{own}"] = posterior.log_std.data[at].view(shape)
        tensors[f"prior_mean/{own}"] = posterior.prior_mean[at].view(shape)
        if posterior.units is not None:
            tensors[f"units/{own}"] = posterior.units[at].view(shape)
    for when, snapshot in earlier.items():
        tensors |= {f"{when}/{f.name}": getattr(snapshot, f.name) for f in fields(Snapshot)}
    values = {"groups": list(posterior.groups), "prior_fixed": posterior.prior_fixed, "earlier": list(earlier)}
    values["prior_source"] = posterior.prior_source
    return tensors, values | {"prior_choices": posterior.prior_choices, "unit_nats": posterior.unit_nats}


def load_earlier(path: str | Path) -> dict[str, Snapshot]:
    """Posteriors of earlier moments of training that a run folder holds, by name."""
    tensors, values = load_state(Path(path) / "posterior.safetensors")
    return {
        when: Snapshot(**{f.name: tensors[f"{when}/{f.name}"] for f in fields(Snapshot)})
        for when in values.get("earlier", [])
    }


def load_posterior(path: str | Path, posterior: Posterior) -> Posterior:
    """Fill a posterior over a freshly built network with what a run folder holds."""
    folder = Path(path)
    model, _ = load_state(folder / "model.safetensors")
    posterior.model.load_state_dict(model)
    tensors, values = load_state(folder / "posterior.safetensors")
    posterior.prior_fixed = bool(values.get("prior_fixed", False))  # a prior is free only if the run says so
    posterior.prior_source = values.get("prior_source")
    posterior.prior_choices = int(values.get("prior_choices", 1))
    posterior.unit_nats = float(values.get("unit_nats", 0.0))
    posterior.units = None
    try:
        posterior.prior_log_std.data.copy_(tensors["prior_log_std"])
        for name, at in zip(posterior.names, posterior.parameter_slices, strict=True):
            posterior.log_std.data[at] = tensors[f"log_std/{name}"].reshape(-1)
            posterior.prior_mean[at] = tensors[f"prior_mean/{name}"].reshape(-1)
            if f"units/{name}" in tensors:
                posterior.units = torch.ones_like(posterior.prior_mean) if posterior.units is None else posterior.units
                posterior.units[at] = tensors[f"units/{name}"].reshape(-1)
    except KeyError as error:
        raise RunError(f"{folder} holds a posterior over other parameters: {error} is missing") from error
    return posterior


def _same_config(kept: dict[str, Any], asked: dict[str, Any], path: Path) -> None:
    different = [
        key
        for key in sorted(kept.keys() | asked.keys())
        if key not in IGNORED_ON_RESUME and kept.get(key) != asked.get(key)
    ]
    if different:
        shown = "; ".join(f"{key}: {kept.get(key)!r} there, {asked.get(key)!r} now" for key in different[:3])
        raise RunError(f"the run in {path} was started with other settings ({shown}); resume it with the same ones")
