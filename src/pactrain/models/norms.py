"""BatchNorm replaced by GroupNorm, whose statistics belong to one example and so leave a certificate possible."""

import math

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

GROUPS = 32


def to_group_norm(model: nn.Module) -> nn.Module:
    """Replace every BatchNorm of `model`, in place, by a GroupNorm with the same scale and shift; returns the model."""
    for name, child in model.named_children():
        if isinstance(child, _BatchNorm):
            groups = math.gcd(GROUPS, child.num_features)
            norm = nn.GroupNorm(groups, child.num_features, eps=child.eps, affine=child.affine)
            if child.affine:
                norm.weight, norm.bias = child.weight, child.bias
            setattr(model, name, norm.to(next(child.parameters(), norm.weight).device) if child.affine else norm)
        else:
            to_group_norm(child)
    return model
