"""BatchNorm, or instead GroupNorm, whose statistics belong to one example and so leave a certificate possible."""

from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from pactrain.runtime.errors import PactrainError

Norm = Literal["batch", "group"]

GROUPS = 32
CHANNELS_A_GROUP, NUMBERS_A_GROUP = 2, 8
"""The fewest channels of an image that share statistics, and the fewest single numbers: alone, a number would be normalised to
nothing.  Full networks so have the usual 32 groups; in narrow ones two channels were better than eight (512 digits of MNIST, VGG13 at an
eighth of its width, 120 steps of Adam: loss .90 against 2.25)."""


def groups_for(channels: int, *, at_least: int = CHANNELS_A_GROUP) -> int:
    """The most groups, at most 32, that divide the channels and leave each so many of them; one group otherwise.

    >>> [groups_for(c) for c in (3, 8, 12, 64, 96, 512)]
    [1, 4, 6, 32, 32, 32]
    """
    fits = (g for g in range(1, GROUPS + 1) if channels % g == 0 and channels // g >= at_least)
    return max(fits, default=1)


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """The normalisation of an image's channels."""
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(groups_for(channels), channels)
    raise PactrainError(f"norm={norm!r} is not known; use batch, or group where a certificate is wanted")


def to_group_norm(model: nn.Module) -> nn.Module:
    """Replace every BatchNorm by a GroupNorm with the same scale and shift, so that a certificate is possible.

    Args:
        model: The network; it is changed in place.

    Returns:
        The same network.

    Example:
        >>> to_group_norm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))[1].num_groups
        4
    """
    for name, child in model.named_children():
        if isinstance(child, _BatchNorm):
            single = isinstance(child, nn.BatchNorm1d)  # its channels are mostly single numbers
            groups = groups_for(child.num_features, at_least=NUMBERS_A_GROUP if single else CHANNELS_A_GROUP)
            norm = nn.GroupNorm(groups, child.num_features, eps=child.eps, affine=child.affine)
            if child.affine:
                norm.weight, norm.bias = child.weight, child.bias
            setattr(model, name, norm.to(next(child.parameters(), norm.weight).device) if child.affine else norm)
        else:
            to_group_norm(child)
    return model
