"""Networks for images by name: `vgg13`, `resnet18:width=0.25,norm=group`, …"""

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pactrain.models.cnn import cnn
from pactrain.models.densenet import densenet
from pactrain.models.resnet import resnet
from pactrain.models.vgg import vgg
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.network_names import IMAGE_MODELS

SIDE, SMALLEST = 32, 8
"""Side of the images that the networks take; smaller ones get a black frame, and fewer pixels are no image."""

FRAMES = {"cnn5": 4, "vgg4": 8}
"""Networks that take any images whose side is a multiple of a number."""

BUILDERS: dict[str, Callable[..., nn.Sequential]] = {
    "cnn": cnn,
    "vgg": vgg,
    "resnet": resnet,
    "densenet": densenet,
}


class Images(nn.Module):
    """Rows of pixels, channel by channel, as images of 32×32, or with a smaller frame; images stay images."""

    def __init__(self, channels: int, side: int, framed: int = SIDE) -> None:
        super().__init__()
        self.channels, self.side, self.framed = channels, side, framed

    def forward(self, x: Tensor) -> Tensor:
        """The images, laid out with their channels last, which convolutions read sooner."""
        images = x.reshape(len(x), self.channels, self.side, self.side)
        left = (self.framed - self.side) // 2
        right = self.framed - self.side - left
        framed = functional.pad(images, (left, right, left, right)) if right else images
        return framed.to(memory_format=torch.channels_last)


def image_shape(inputs: int) -> tuple[int, int]:
    """Channels and side of a square image, grey or in three colours, from its number of pixels.

    >>> image_shape(784), image_shape(3072)
    ((1, 28), (3, 32))
    """
    for channels in (1, 3):
        side = math.isqrt(inputs // channels)
        if channels * side * side == inputs and SMALLEST <= side <= SIDE:
            return channels, side
    raise PactrainError(
        f"rows of {inputs} numbers are no square images of {SMALLEST}×{SMALLEST} to {SIDE}×{SIDE} pixels in one or three channels, "
        "which networks for images and augmentation need; use mlp or FILE.py:FUNCTION, and --augment none"
    )


def image_model(name: str, inputs: int, classes: int, *, seed: int = 0) -> nn.Sequential:
    """A network for rows of `inputs` pixels by its name and options, torch's default initialisation drawn from `seed`.

    >>> image_model("resnet18:width=.125,norm=group", 3072, 10)(torch.zeros(2, 3072)).shape
    torch.Size([2, 10])
    """
    family, _, options = name.partition(":")
    kind, layers = IMAGE_MODELS[family]
    make = BUILDERS[kind]
    chosen = _options(name, options, normalised=make is not cnn)
    channels, side = image_shape(inputs)
    framed = SIDE
    if family in FRAMES:
        framed = math.ceil(side / FRAMES[family]) * FRAMES[family]
        chosen["side"] = framed
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make(layers, classes=classes, channels=channels, **chosen)
    return nn.Sequential(OrderedDict([("images", Images(channels, side, framed)), *network.named_children()]))


def _options(name: str, text: str, *, normalised: bool) -> dict[str, Any]:
    """`width=0.25,norm=group` as keywords."""
    found: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        if match := re.fullmatch(r"width=(\d+\.?\d*|\.\d+)", part):
            found["width"] = float(match[1])
        elif normalised and (match := re.fullmatch(r"norm=(batch|group)", part)):
            found["norm"] = match[1]
        else:
            norms = " and norm=batch or norm=group" if normalised else "; it has no normalisation"
            raise PactrainError(f"model {name!r}: {part!r} is not known; its options are width=0.25, say,{norms}")
    if found.get("width", 1.0) <= 0:
        raise PactrainError(f"model {name!r}: the width must be above 0")
    return found
