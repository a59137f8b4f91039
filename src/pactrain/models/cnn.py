"""The plain convolutional networks of the paper for 32×32 images, and a small one: 3×3 filters, ReLU, max-pooling, no normalisation."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

HIDDEN = (1024, 512)
"""Widths of the fully connected layers before the last."""

BLOCKS: dict[int, Sequence[Sequence[int]]] = {
    5: ((32,), (64,)),
    9: ((32, 64), (128, 128), (256, 256)),
    13: ((32, 64), (128, 128), (256,) * 3, (512,) * 3),
    15: ((32, 64), (128, 128), (256,) * 4, (512,) * 4),
}
"""Filters of each block of convolutions, by the network's number of layers; a pooling follows each block."""


def cnn(layers: int = 9, *, classes: int = 10, channels: int = 3, width: float = 1.0, side: int = 32) -> nn.Sequential:
    """Build CNN5, CNN9, CNN13 or CNN15 for 32×32 images.

    Args:
        layers: 5, 9, 13 or 15.
        classes: Number of outputs.
        channels: Channels of an image.
        width: Factor on the width of every hidden layer.
        side: Height and width of an image.

    Returns:
        The network, with torch's default initialisation.

    Example:
        >>> sum(p.numel() for p in cnn(9).parameters())
        5851338
    """
    blocks = BLOCKS[layers]
    built: list[nn.Module] = []
    before = channels
    for block in blocks:
        for filters in block:
            after = max(1, round(width * filters))
            built += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
            before = after
        built.append(nn.MaxPool2d(2))
    left = side // 2 ** len(blocks)
    widths = [before * left * left, *(max(1, round(width * w)) for w in HIDDEN)]
    built.append(nn.Flatten())
    for a, b in pairwise(widths):
        built += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*built, nn.Linear(widths[-1], classes))
