"""Networks by name, or from a function in the user's own file."""

import importlib.util
import re

import torch
from torch import nn

from pactrain.data.encoder import Encoder
from pactrain.distributions.prior import fresh_source
from pactrain.models.image import image_model
from pactrain.models.mlp import mlp
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused, refusing
from pactrain.runtime.network_names import GRAPH_MODELS, MLP, check_model, is_image_model


def chosen_model(name: str | None, encoder: Encoder) -> str:
    """The network asked for, or the usual one for the data; it must take what the data is."""
    graph = encoder.node_features > 0
    if name is None:
        return "gcn" if graph else "linear" if encoder.text else "mlp"
    if graph and (re.fullmatch(r"mlp(:.*)?|linear", name) or is_image_model(name)):
        raise PactrainError(
            f"model {name!r} does not see edges; for a graph use {', '.join(GRAPH_MODELS)} or FILE.py:FUNCTION"
        )
    if not graph and name in GRAPH_MODELS:
        raise PactrainError(f"model {name!r} needs a graph; for a table use mlp, linear or FILE.py:FUNCTION")
    return name


def source_of(name: str, seed: int) -> str | None:
    """Where the initial weights of a network come from; None for a user's own function, which may have read them from a file."""
    return None if ".py:" in name else fresh_source(seed)


def make_model(name: str, inputs: int, outputs: int, seed: int) -> nn.Module:
    """A network by name, or from a function in the user's own file."""
    check_model(name)
    if ".py:" in name:
        return _from_file(name, inputs, outputs, seed)
    try:
        return _named(name, inputs, outputs, seed)
    except (RuntimeError, MemoryError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise PactrainError(
            f"model {name!r} cannot be built for {inputs} inputs and {outputs} outputs: {reason}"
        ) from error


def _named(name: str, inputs: int, outputs: int, seed: int) -> nn.Module:
    if name in GRAPH_MODELS:
        from pactrain.models.graph import graph_model

        return graph_model(name, inputs, outputs, seed=seed)
    if match := re.fullmatch(MLP, name):
        widths = [int(w) for w in match[1].split("-")] if match[1] else [256, 256]
        return mlp(inputs, outputs, widths=widths, seed=seed)
    if name == "linear":
        return mlp(inputs, outputs, widths=[], seed=seed)
    return image_model(name, inputs, outputs, seed=seed)


def _from_file(name: str, inputs: int, outputs: int, seed: int) -> nn.Module:
    """What a function in the user's own file returns; whatever else the file does ends in an error that says so."""
    path, _, function = name.rpartition(":")
    spec = importlib.util.spec_from_file_location("pactrain_user_model", path)
    if spec is None or spec.loader is None:
        raise PactrainError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    try:
        refusing(spec.loader.exec_module)(module)
        make = getattr(module, function, None)
        if not callable(make):
            raise PactrainError(f"{path} has no function {function!r}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = refusing(make)(inputs, outputs)
    except Refused as refused:
        raise PactrainError(f"{name} could not be run: {refused}") from refused.error
    except SystemExit as end:
        raise PactrainError(f"{name} ended the program (exit code {end.code}) instead of returning a network") from end
    if not isinstance(model, nn.Module):
        raise PactrainError(f"{function} of {path} returned {type(model).__name__}, not a torch module")
    return model
