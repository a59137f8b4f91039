"""VGG networks for 32×32 images: blocks of normalised 3×3 convolutions, then one linear layer."""

from collections.abc import Sequence

from torch import nn

from pactrain.models.norms import Norm, norm_layer

BLOCKS: dict[int, Sequence[Sequence[int]]] = {
    4: ((64,), (128,), (256,)),
    13: ((64,) * 2, (128,) * 2, (256,) * 2, (512,) * 2, (512,) * 2),
    19: ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4),
}
"""Filters of each block of convolutions, by Simonyan and Zisserman's number of layers (VGG4 is ours); a pooling follows each block.

Of their three fully connected layers an image of 32×32 needs the last only, as is usual.
"""


def vgg(
    layers: int = 13, *, classes: int = 10, channels: int = 3, width: float = 1.0, norm: Norm = "batch", side: int = 32
) -> nn.Sequential:
    """Build VGG4, VGG13 or VGG19 for 32×32 images.

    Args:
        layers: 4, 13 or 19.
        classes: Number of outputs.
        channels: Channels of an image.
        width: Factor on the width of every hidden layer.
        norm: "batch", or "group" where a certificate is wanted.
        side: Height and width of an image.

    Returns:
        The network, with torch's default initialisation.

    Example:
        >>> sum(p.numel() for p in vgg(13).parameters())
        9416010
    """
    built: list[nn.Module] = []
    before = channels
    for block in BLOCKS[layers]:
        for filters in block:
            after = max(1, round(width * filters))
            built += [nn.Conv2d(before, after, 3, padding=1), norm_layer(norm, after), nn.ReLU()]
            before = after
        built.append(nn.MaxPool2d(2))
    left = side // 2 ** len(BLOCKS[layers])
    return nn.Sequential(*built, nn.Flatten(), nn.Linear(before * left * left, classes))
