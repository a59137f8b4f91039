"""Residual networks for 32×32 images: the first layer is a 3×3 convolution of stride 1, without pooling."""

import torch
from torch import Tensor, nn

from pactrain.models.norms import Norm, norm_layer

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
"""Residual blocks in each of the four stages, by the network's number of layers."""


class Block(nn.Module):
    """Two convolutions beside a shortcut (He, Zhang, Ren and Sun's basic block)."""

    def __init__(self, before: int, after: int, *, stride: int, norm: Norm = "batch") -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.first_norm = norm_layer(norm, after)
        self.second = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.second_norm = norm_layer(norm, after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm_layer(norm, after))

    def forward(self, x: Tensor) -> Tensor:
        """What the block makes of x."""
        out = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(out)) + self.shortcut(x))


def resnet(
    layers: int = 18, *, classes: int = 10, channels: int = 3, width: float = 1.0, norm: Norm = "batch"
) -> nn.Sequential:
    """Build ResNet18 or ResNet34 for 32×32 images.

    Args:
        layers: 18 or 34.
        classes: Number of outputs.
        channels: Channels of an image.
        width: Factor on the width of every hidden layer.
        norm: "batch", or "group" where a certificate is wanted.

    Returns:
        The network, with torch's default initialisation.

    Example:
        >>> sum(p.numel() for p in resnet(18).parameters())
        11173962
    """
    before = max(1, round(64 * width))
    built: list[nn.Module] = [
        nn.Conv2d(channels, before, 3, padding=1, bias=False),
        norm_layer(norm, before),
        nn.ReLU(),
    ]
    for stage, depth in enumerate(DEPTHS[layers]):
        after = max(1, round(64 * 2**stage * width))
        for block in range(depth):
            built.append(Block(before, after, stride=2 if stage and not block else 1, norm=norm))
            before = after
    return nn.Sequential(*built, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))
