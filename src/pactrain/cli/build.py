"""Building what a command or a run folder names: the training data, the network, the trained posterior."""

from pathlib import Path
from typing import Any

from torch import nn

from pactrain.cli.trust import Outside
from pactrain.data.encoder import Encoder
from pactrain.data.load import load_described
from pactrain.data.task import Task
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.models.image import image_shape
from pactrain.models.load_run import check_size
from pactrain.models.named import make_model
from pactrain.problem.augmentation import augmented
from pactrain.problem.uncounted_part import uncounted_part
from pactrain.runs.configuration import model_digest
from pactrain.runs.weight_files import MODEL, load_posterior
from pactrain.runtime.errors import DataError, PactrainError, RunError
from pactrain.runtime.untrusted import made_from


def training_data(task: Task, augment: str, counts: int) -> Any:
    """The training data as `fit` takes it, its images changed at random if that is asked for."""
    if augment == "none":
        if counts != 1:
            raise PactrainError("--augment-counts goes with --augment flip_crop, flip or crop")
        return task.train
    if task.encoder.node_features:
        raise PactrainError(f"--augment changes images; {task.name} is a graph")
    channels, side = image_shape(task.inputs)
    return augmented(task.train, augment, shape=(channels, side, side), counts=counts)  # type: ignore[arg-type]


def text_columns(names: tuple[str, ...], encoder: str | None) -> dict[str, str]:
    """The columns of free text, each with its encoder; a folder by its full path, so that a run finds it again."""
    from pactrain.data.text import DEFAULT

    if encoder is not None and not names:
        raise PactrainError("--encoder reads free text: name its columns with --text")
    used = encoder or DEFAULT
    return dict.fromkeys(names, str(Path(used).resolve()) if Path(used).is_dir() else used)


def read_encoder(run: Path, config: dict[str, Any]) -> Encoder:
    """How rows of a run become features."""
    return made_from(run / "config.json", Encoder.from_dict, config["preprocess"])


def network_of(run: Path, config: dict[str, Any], outside: Outside) -> nn.Module:
    """A freshly built network of the structure that a run was trained with."""
    network, encoder = outside.network(config, run), read_encoder(run, config)
    outside.encoders(config, run)
    sizes = encoder.inputs, len(encoder.classes) or 1, config["seed"]
    if ".py:" not in network:
        check_size(network, sizes, run / MODEL)
    model = make_model(network, *sizes)
    if model_digest(model) != config["model_digest"]:
        raise RunError(
            f"{network} builds another network than the one that {run} was trained with: its source has changed"
        )
    return model


def rebuild(run: Path, config: dict[str, Any], outside: Outside) -> Posterior:
    """The trained posterior of a run, over a freshly built network."""
    return load_posterior(run, Posterior(network_of(run, config, outside), Prior(per=config["prior"])))


def reload_task(run: Path, config: dict[str, Any], root: Path | None, outside: Outside) -> Task:
    """The data a run was trained on, loaded again."""
    name = outside.data_name(config, run)
    outside.encoders(config, run)
    first = uncounted_part(config["prior_data"], config["certificate"])
    task = load_described(config["data"], name, seed=config["seed"], root=root, prior_data=first)
    if task.encoder.to_dict() != read_encoder(run, config).to_dict():
        raise DataError(f"{name} is no longer the data that the run was trained on")
    return task
