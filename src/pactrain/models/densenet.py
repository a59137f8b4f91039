"""Densely connected networks for 32×32 images: the first layer is a 3×3 convolution of stride 1, without pooling."""

import torch
from torch import Tensor, nn

from pactrain.models.norms import Norm, norm_layer

BLOCKS = {121: (6, 12, 24, 16)}
"""Dense layers in each of the four blocks, by the network's number of layers."""

GROWTH = 32
"""Channels that each dense layer adds."""


class DenseLayer(nn.Module):
    """A bottleneck and a 3×3 convolution, whose output is put beside the input (Huang, Liu, van der Maaten and Weinberger)."""

    def __init__(self, before: int, growth: int, *, norm: Norm) -> None:
        super().__init__()
        self.first_norm = norm_layer(norm, before)
        self.first = nn.Conv2d(before, 4 * growth, 1, bias=False)
        self.second_norm = norm_layer(norm, 4 * growth)
        self.second = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The input with the new channels behind it."""
        out = self.first(torch.relu(self.first_norm(x)))
        return torch.cat([x, self.second(torch.relu(self.second_norm(out)))], dim=1)


def densenet(
    layers: int = 121, *, classes: int = 10, channels: int = 3, width: float = 1.0, norm: Norm = "batch"
) -> nn.Sequential:
    """Build DenseNet121 for 32×32 images.

    Args:
        layers: 121.
        classes: Number of outputs.
        channels: Channels of an image.
        width: Factor on the width of every hidden layer.
        norm: "batch", or "group" where a certificate is wanted.

    Returns:
        The network, with torch's default initialisation.

    Example:
        >>> sum(p.numel() for p in densenet(121).parameters())
        6956298
    """
    growth = max(1, round(GROWTH * width))
    before = 2 * growth
    built: list[nn.Module] = [nn.Conv2d(channels, before, 3, padding=1, bias=False)]
    for block, depth in enumerate(BLOCKS[layers]):
        if block:  # half the channels, half the side
            after = before // 2
            built += [norm_layer(norm, before), nn.ReLU(), nn.Conv2d(before, after, 1, bias=False), nn.AvgPool2d(2)]
            before = after
        for _ in range(depth):
            built.append(DenseLayer(before, growth, norm=norm))
            before += growth
    built += [norm_layer(norm, before), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*built, nn.Linear(before, classes))
