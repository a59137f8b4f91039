"""BatchNorm, or GroupNorm in its place, whose statistics belong to one example and so leave a certificate possible."""

from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from pactrain.errors import PactrainError

Norm = Literal["batch", "group"]

GROUPS = 32
CHANNELS_A_GROUP = 8
"""The fewest channels that share statistics: a channel alone, once pooled to one number, would be normalised to nothing."""


def groups_for(channels: int) -> int:
    """The most groups, at most 32, that divide the channels and leave each at least eight of them; one group otherwise.

    >>> [groups_for(c) for c in (8, 12, 64, 96, 512)]
    [1, 1, 8, 12, 32]
    """
    fits = (g for g in range(1, GROUPS + 1) if channels % g == 0 and channels // g >= CHANNELS_A_GROUP)
    return max(fits, default=1)


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """The normalisation of an image's channels."""
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(groups_for(channels), channels)
    raise PactrainError(f"norm={norm!r} is not known; use batch, or group where a certificate is wanted")


def to_group_norm(model: nn.Module) -> nn.Module:
    """Replace every BatchNorm of `model`, in place, by a GroupNorm with the same scale and shift; returns the model."""
    for name, child in model.named_children():
        if isinstance(child, _BatchNorm):
            groups = groups_for(child.num_features)
            norm = nn.GroupNorm(groups, child.num_features, eps=child.eps, affine=child.affine)
            if child.affine:
                norm.weight, norm.bias = child.weight, child.bias
            setattr(model, name, norm.to(next(child.parameters(), norm.weight).device) if child.affine else norm)
        else:
            to_group_norm(child)
    return model
