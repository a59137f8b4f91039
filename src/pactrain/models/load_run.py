"""`load`: the result of a run, from its folder."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from pactrain.data.encoder import Encoder
from pactrain.data.text import DEFAULT
from pactrain.models.named import make_model
from pactrain.report import page_of
from pactrain.runs.reload import reload
from pactrain.runs.result import Result
from pactrain.runs.weight_files import MODEL
from pactrain.runtime.errors import RunError
from pactrain.runtime.untrusted import made_from, read_json, regular


def load(run: str | Path, model: nn.Module | None = None) -> Result:
    """Read the result of a completed run: network, posterior, certificate, preprocessing, history, metrics.

    Nothing in the folder is executed: weights are safetensors, everything else JSON.

    Args:
        run: A folder that `fit(out=…)` or `pactrain train` has written.
        model: A network of the structure that was trained, which takes the run's weights.  Not needed for runs of
            `pactrain train` whose network has a name (mlp, resnet18, gcn, …).

    Returns:
        The result, which predicts as the first one did.

    Raises:
        RunError: The folder is not complete or was changed, or the network must be given.

    Example:
        >>> import pactrain, tempfile, torch
        >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = pactrain.fit(torch.nn.Linear(3, 2), (X, (X[:, 0] > 0).long()), budget="3 epochs", out=f"{folder}/run")
        ...     again = pactrain.load(f"{folder}/run", torch.nn.Linear(3, 2))
        >>> bool((first.predict(X).probabilities == again.predict(X).probabilities).all())
        True
    """
    folder = Path(run)
    if not folder.is_dir():
        raise RunError(f"{run} is not a run folder; name a folder that fit(out=…) or pactrain train has written")
    config = made_from(folder / "config.json", dict[str, Any], read_json(folder / "config.json"))
    encoder = saved_encoder(folder, config)
    return reload(folder, built(folder, config, encoder) if model is None else model, encoder, draw=page_of)


def saved_encoder(folder: Path, config: dict[str, Any]) -> Encoder | None:
    """How raw rows of a run's table are prepared; None if it was not trained on one.

    Raises:
        RunError: Texts are read by an encoder of the run's own choice.
    """
    if not config.get("preprocess"):
        return None
    encoder = made_from(folder / "config.json", Encoder.from_dict, config["preprocess"])
    others = [column.encoder for column in encoder.text if column.encoder != DEFAULT]
    if others:
        raise RunError(
            f"{folder} reads texts with the encoder {others[0]}, which is not followed; pass features to model(x)"
        )
    return None if encoder.node_features else encoder


def built(folder: Path, config: dict[str, Any], encoder: Encoder | None) -> nn.Module:
    """The network of a run of `pactrain train`, if it has a name."""
    name = config.get("model")
    if not isinstance(name, str) or "preprocess" not in config:
        raise RunError(f"{folder} does not say how its network is made: pass load(run, model=your_network)")
    if ".py:" in name:
        raise RunError(
            f"the network of {folder} is made by {name}, which is not run: pass load(run, model=your_network)"
        )
    encoder = encoder or made_from(folder / "config.json", Encoder.from_dict, config["preprocess"])

    def make(values: dict[str, Any]) -> nn.Module:
        sizes = encoder.inputs, len(encoder.classes) or 1, int(values["seed"])
        check_size(name, sizes, folder / MODEL)
        return make_model(name, *sizes)

    return made_from(folder / "config.json", make, config)


def check_size(network: str, sizes: tuple[int, int, int], weights: Path) -> None:
    """Refuse to build a network that the file of its weights is far too small for; its size is found without building it."""
    with torch.device("meta"):
        numbers = sum(parameter.numel() for parameter in make_model(network, *sizes).parameters())
    if numbers > regular(weights, RunError).stat().st_size:  # a weight takes at least two bytes
        raise RunError(
            f"{weights} does not hold the {numbers:,} weights of {network}, which the run says is its network"
        )
