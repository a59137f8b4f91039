"""The weights in a run folder: the network's own, and what the posterior adds to them."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.probabilities import PROBABILITIES, name_of_probabilities
from pactrain.runtime.errors import RunError
from pactrain.runtime.files import load_state
from pactrain.runtime.untrusted import made_from, read_json

MODEL, POSTERIOR = "model.safetensors", "posterior.safetensors"


def weights_of(folder: Path, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """One of the files of weights of a completed run, of the digest that the run noted."""
    file = folder / "metrics.json"
    digest = made_from(file, lambda metrics: str(metrics["weights"][name]), read_json(file))
    return load_state(folder / name, digest=digest)


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
    if posterior.prior_rows is not None:
        tensors["prior_rows"] = posterior.prior_rows
    for when, snapshot in earlier.items():
        tensors |= {f"{when}/{f.name}": getattr(snapshot, f.name) for f in fields(Snapshot)}
    return tensors, {
        "groups": _grouping(posterior),
        "prior_fixed": posterior.prior_fixed,
        "earlier": list(earlier),
        "prior_source": posterior.prior_source,
        "unit_nats": posterior.unit_nats,
        "probabilities": name_of_probabilities(posterior.probabilities),
    }


def _grouping(posterior: Posterior) -> dict[str, list[str]]:
    """The parameters of each group of the prior, by name."""
    places = list(zip(posterior.names, posterior.parameter_slices, strict=True))
    return {
        group: [name.removeprefix("_orig_mod.") for name, at in places if of.start <= at.start < of.stop]
        for group, of in zip(posterior.groups, posterior.group_slices, strict=True)
    }


def load_earlier(path: str | Path) -> dict[str, Snapshot]:
    """Posteriors of earlier moments of training that a run folder holds, by name."""
    tensors, values = weights_of(Path(path), POSTERIOR)
    return {
        when: Snapshot(**{f.name: tensors[f"{when}/{f.name}"] for f in fields(Snapshot)})
        for when in values.get("earlier", [])
    }


def load_posterior(path: str | Path, posterior: Posterior) -> Posterior:
    """Fill a posterior over a freshly built network with what a run folder holds."""
    folder = Path(path)
    model, _ = weights_of(folder, MODEL)
    try:
        posterior.model.load_state_dict(model)
    except RuntimeError as error:
        raise RunError(f"{folder / MODEL} holds the weights of another network: {error}") from error
    tensors, values = weights_of(folder, POSTERIOR)
    posterior.prior_fixed = bool(values.get("prior_fixed", False))  # a prior is free only if the run says so
    posterior.prior_source = values.get("prior_source")
    posterior.unit_nats = float(values.get("unit_nats", 0.0))
    posterior.probabilities = PROBABILITIES.get(str(values.get("probabilities")))
    posterior.prior_rows = tensors.get("prior_rows")
    posterior.units = None
    try:
        posterior.prior_log_std.data.copy_(tensors["prior_log_std"])
        for name, at in zip(posterior.names, posterior.parameter_slices, strict=True):
            posterior.log_std.data[at] = tensors[f"log_std/{name}"].reshape(-1)
            posterior.prior_mean[at] = tensors[f"prior_mean/{name}"].reshape(-1)
            if f"units/{name}" in tensors:
                posterior.units = torch.ones_like(posterior.prior_mean) if posterior.units is None else posterior.units
                posterior.units[at] = tensors[f"units/{name}"].reshape(-1)
    except (KeyError, RuntimeError) as error:
        raise RunError(f"{folder} holds a posterior over other parameters: {error} is missing") from error
    return posterior
