"""The update formulas of a step, as plain operations and compiled.

`fused.py` has the same formulas for the compiled kernels.

`curvature.py` and `moves.py` have the same formulas as separate operations, which need no compiler and no time to compile.  All
functions work in place on the flat vectors of one prior group; `c` holds the numbers that change from step to step, so that nothing
is compiled anew for them.
"""

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from subprocess import SubprocessError
from typing import Any

import torch
from torch import Tensor

from pactrain.runtime.gave_up import gave_up


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


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants."""

WORTH_COMPILING = 5e9
"""Weights times steps from which the seconds that compiling takes are won back (about 3 ns a weight and step on a CPU)."""


@dataclass(frozen=True)
class Kernels:
    """The compiled functions."""

    draw: Callable[..., None]
    adam: Callable[..., None]
    natural: Callable[..., None]


def draw(h: Tensor, m: Tensor, w: Tensor, c: Tensor) -> None:
    """w holds standard normal noise and becomes a draw; c = (prior precision, 1 / KL weight, …)."""
    w.copy_(m + w * torch.rsqrt(h * c[1] + c[0]))


def _learn(h: Tensor, g: Tensor, m: Tensor, m0: Tensor, w: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The new curvature, and the gradient of the objective."""
    precision, inverse, weight, forget = c[:4].unbind()
    information = h * inverse + precision  # 1/std²
    gap = h - (w - m) * g * information
    new = (h - forget * gap + (0.5 * forget * forget * inverse) * gap * gap / information).clamp_min(0.0)
    return new, g + weight * precision * (m - m0)


def adam(h: Tensor, g: Tensor, m: Tensor, m0: Tensor, w: Tensor, first: Tensor, second: Tensor, c: Tensor) -> None:
    """Curvature and means; c = (precision, 1/weight, weight, forget, rate / bias of first, 1 / root of bias of second)."""
    new, grad = _learn(h, g, m, m0, w, c)
    a = torch.lerp(first, grad, 1 - BETA1)
    b = second * BETA2 + (1 - BETA2) * grad * grad
    m.sub_(c[4] * a / (b.sqrt() * c[5] + EPSILON))
    h.copy_(new)
    first.copy_(a)
    second.copy_(b)
    g.zero_()


def natural(h: Tensor, g: Tensor, m: Tensor, m0: Tensor, w: Tensor, first: Tensor, c: Tensor) -> None:
    """Curvature and means by natural steps; c = (precision, 1/weight, weight, forget, rate, 1 / bias of first)."""
    new, grad = _learn(h, g, m, m0, w, c)
    a = torch.lerp(first, grad, 1 - BETA1)
    information = new * c[1] + c[0]
    limit = torch.rsqrt(information)
    m.sub_(c[4] * torch.clamp(a * c[5] * c[1] / information, -limit, limit))
    h.copy_(new)
    first.copy_(a)
    g.zero_()


def kernels(dtype: torch.dtype, device: str) -> Kernels | None:
    """The compiled functions; None where torch.compile does not work (no C++ compiler, say)."""
    found = _compiled(dtype, device)
    if isinstance(found, Kernels):
        return found
    gave_up("Training steps were not compiled", found, instead="they are made of plain operations, which take longer")
    return None


@functools.cache
def _compiled(dtype: torch.dtype, device: str) -> Kernels | Exception:
    """Compiled and tried out once a process, or why that failed."""

    def compiled(function: Callable[..., None], vectors: int) -> Callable[..., None]:
        kernel: Any = torch.compile(function, dynamic=True, fullgraph=True)
        for size in (96, 160):
            kernel(
                *(torch.ones(size, dtype=dtype, device=device) for _ in range(vectors)), torch.ones(6).to(device, dtype)
            )
        return kernel  # type: ignore[no-any-return]

    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return Kernels(compiled(draw, 3), compiled(adam, 7), compiled(natural, 6))
    except (
        RuntimeError,
        OSError,
        ImportError,
        SubprocessError,
    ) as error:  # those of torch's compiler are RuntimeErrors
        return error.with_traceback(None)
