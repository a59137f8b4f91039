"""How the means of a block move once the gradient of the objective is known: in place, with no memory but what is given.

`fused.py` has the same formulas for the compiled kernels.
"""

import math

import torch
from torch import Tensor

from pactrain.fused import BETA1, BETA2, EPSILON


def adam_move(
    means: Tensor, grads: Tensor, first: Tensor, second: Tensor, *, rate: float, step: int, scratch: Tensor
) -> None:
    """One step of Adam, counted from zero."""
    if means.device.type == "cpu":  # what torch.optim.Adam(fused=True) calls: one pass
        torch._fused_adam_(
            [means],
            [grads],
            [first],
            [second],
            [],
            [torch.tensor(step + 1.0, device="cpu")],
            lr=rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
        return
    first.lerp_(grads, 1 - BETA1)
    second.mul_(BETA2).addcmul_(grads, grads, value=1 - BETA2)
    correction = math.sqrt(1 - BETA2 ** (step + 1))
    torch.sqrt(second, out=scratch).add_(EPSILON * correction)
    means.addcdiv_(first, scratch, value=-rate * correction / (1 - BETA1 ** (step + 1)))


def natural_move(
    means: Tensor,
    grads: Tensor,
    first: Tensor,
    curvature: Tensor,
    precision: Tensor,
    kl_weight: float,
    *,
    rate: float,
    step: int,
    scratch: tuple[Tensor, Tensor],
) -> None:
    """Move the means by `rate` of a Newton step (the natural gradient of the objective), at most `rate` stds each.

    Adam moves every weight by its rate whatever its gradient, and the wandering of weights that do not matter is
    charged in the KL; a natural step moves them in proportion to their own posterior std.
    """
    a, b = scratch
    first.lerp_(grads, 1 - BETA1)
    torch.add(curvature, precision, alpha=kl_weight, out=a)
    torch.div(first, a, out=b).div_(1 - BETA1 ** (step + 1))
    limit = a.div_(kl_weight).rsqrt_()
    torch.minimum(b, limit, out=b)
    torch.maximum(b, limit.neg_(), out=b)
    means.sub_(b, alpha=rate)
