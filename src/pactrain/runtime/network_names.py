"""Names of networks.  No torch: the command line checks them before anything is loaded."""

import re
from pathlib import Path

from pactrain.runtime.errors import PactrainError, did_you_mean

GRAPH_MODELS = ("gcn", "gat", "sage", "appnp")
MLP = r"mlp(?::([1-9]\d*(?:-[1-9]\d*)*))?"

IMAGE_MODELS: dict[str, tuple[str, int]] = {
    "cnn5": ("cnn", 5),
    "cnn9": ("cnn", 9),
    "cnn13": ("cnn", 13),
    "cnn15": ("cnn", 15),
    "vgg4": ("vgg", 4),
    "vgg13": ("vgg", 13),
    "vgg19": ("vgg", 19),
    "resnet18": ("resnet", 18),
    "resnet34": ("resnet", 34),
    "densenet121": ("densenet", 121),
}
"""The family and the number of layers of each network for images."""

MOST_LAYERS = 1000
"""Of a network by name: a run folder of somebody else's may ask for any number, and each takes time to build."""


def is_image_model(name: str) -> bool:
    """True if the name, without its options, is that of a network for images."""
    return name.partition(":")[0] in IMAGE_MODELS


def check_model(name: str | None) -> None:
    """Refuse the name of an unknown network or of a missing file, before any data is read."""
    if name is not None and name.count("-") >= MOST_LAYERS and ".py:" not in name:
        raise PactrainError(
            f"model {name[:40]!r}… has more than {MOST_LAYERS:,} layers; write a function of your own, FILE.py:FUNCTION"
        )
    if name is None or name in GRAPH_MODELS or re.fullmatch(MLP, name) or name == "linear" or is_image_model(name):
        return
    path, _, function = name.rpartition(":")
    if not path.endswith(".py") or not function:
        known = ("mlp", "linear", *GRAPH_MODELS, *IMAGE_MODELS)
        raise PactrainError(
            f"model {name!r} is not known{did_you_mean(name, known)}; use mlp, mlp:600-600 (widths), linear, {', '.join(GRAPH_MODELS)}, "
            f"{', '.join(IMAGE_MODELS)} (vgg13:width=0.25,norm=group, say) or FILE.py:FUNCTION"
        )
    if not Path(path).exists():
        raise PactrainError(f"there is no file {path} to take the model from")
