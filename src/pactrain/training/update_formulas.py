"""The formulas of a training step with closed-form stds, each written once.

`curvature.py` calls them block by block, `update_kernels.py` compiles them.  All of them work in place on flat vectors.  Vectors to
calculate in (`scratch`) save plain operations an allocation each; compiled code needs none.  Numbers that change from step to step are
floats, or tensors in compiled code, which would otherwise be compiled anew for each of their values.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants."""

Moves = Literal["adam", "natural", "none"]
"""How the means move; "none": an optimiser of the user's moves them."""

Number = float | Tensor
Scratch = tuple[Tensor | None, Tensor | None]
NO_SCRATCH: Scratch = (None, None)


class Vectors(NamedTuple):
    """What a step reads and changes, of some of the weights."""

    curvature: Tensor
    grads: Tensor  # of the risk, at the draw
    means: Tensor
    prior_mean: Tensor
    draw: Tensor
    first_moment: Tensor
    second_moment: Tensor

    def part(self, at: slice) -> "Vectors":
        """Views of the weights at `at`; moments that are not kept remain empty."""
        return Vectors(*(v[at] for v in self))


class Numbers(NamedTuple):
    """What is the same for all weights in a step."""

    kl_weight: Number
    forget: Number  # share of a new observation in the moving average of the curvature
    rate: Number
    step: Number  # counted from one
    first_bias: Number  # 1 − β₁^step: what the first moment has to be divided by, as it starts from zero
    second_bias: Number  # (1 − β₂^step)^½, likewise of the root of the second moment


def numbers_of(step: int, *, kl_weight: float, memory: float, rate: float) -> Numbers:
    """The numbers of a step, counted from zero."""
    count = step + 1
    return Numbers(kl_weight, 1 - memory, rate, float(count), 1 - BETA1**count, math.sqrt(1 - BETA2**count))


def plus(x: Tensor, y: Tensor, *, times: Number, out: Tensor | None = None) -> Tensor:
    """x + times·y."""
    if isinstance(times, Tensor):
        return _written(x + times * y, out)
    return torch.add(x, y, alpha=times, out=out)


def plus_product(x: Tensor, y: Tensor, z: Tensor, *, times: Number, out: Tensor) -> Tensor:
    """x + times·y·z."""
    if isinstance(times, Tensor):
        return _written(x + times * y * z, out)
    return torch.addcmul(x, y, z, value=times, out=out)


def plus_quotient(x: Tensor, y: Tensor, z: Tensor, *, times: Number, out: Tensor) -> Tensor:
    """x + times·y/z."""
    if isinstance(times, Tensor):
        return _written(x + times * y / z, out)
    return torch.addcdiv(x, y, z, value=times, out=out)


def _written(found: Tensor, out: Tensor | None) -> Tensor:
    return found if out is None else out.copy_(found)


def information(curvature: Tensor, precision: Tensor, kl_weight: Number, out: Tensor | None = None) -> Tensor:
    """1/std² = prior precision + curvature / KL weight."""
    return plus(precision, curvature, times=1 / kl_weight, out=out)


def draw_weights(
    curvature: Tensor,
    means: Tensor,
    noise: Tensor,
    precision: Tensor,
    kl_weight: Number,
    *,
    out: Tensor,
    scratch: Scratch = NO_SCRATCH,
) -> Tensor:
    """Write mean + std·noise to `out`, which may be `noise`; returns 1/std."""
    root = torch.sqrt(information(curvature, precision, kl_weight, out=scratch[0]), out=scratch[1])
    torch.addcdiv(means, noise, root, out=out)
    return root


def update(
    v: Vectors,
    precision: Tensor,
    numbers: Numbers,
    moves: Moves,
    *,
    stds: bool = True,
    clear: bool = True,
    scratch: Scratch = NO_SCRATCH,
    noise_ready: bool = False,
) -> None:
    """One step from the gradients of the risk at the draw: the curvature average, then the means.

    Args:
        v: The vectors; `grads` are used up.
        precision: 1/prior_std², one number or one per weight.
        numbers: What is the same for all weights.
        moves: How the means move.
        stds: Whether stds and KL take part; without, the means move by the risk alone.
        clear: Whether to leave zeros in `grads`.
        scratch: Vectors to calculate in.
        noise_ready: Whether `scratch` already holds 1/std² and noise/std.
    """
    if stds:
        info, noise = scratch
        if not noise_ready or info is None or noise is None:
            info = information(v.curvature, precision, numbers.kl_weight, out=scratch[0])
            noise = torch.sub(v.draw, v.means, out=scratch[1]).mul_(info)
        average_curvature(v.curvature, v.grads, info, noise, numbers)
        moved = torch.sub(v.means, v.prior_mean, out=scratch[1])
        plus_product(v.grads, moved, precision, times=numbers.kl_weight, out=v.grads)
    if moves == "adam":
        adam_move(v, numbers, scratch)
    elif moves == "natural":
        natural_move(v, precision, numbers, scratch)
    if clear:
        v.grads.zero_()


def average_curvature(curvature: Tensor, grads: Tensor, info: Tensor, noise: Tensor, numbers: Numbers) -> None:
    """Take the observed curvature, gradient times noise/std, into the moving average; uses up `info` and `noise`.

        h ← h − forget·gap + ½ forget² gap² std² / KL weight,   gap = h − gradient·noise/std

    The last term is Lin, Schmidt and Khan's correction, which keeps h positive but for rounding.
    """
    forget = numbers.forget
    gap = torch.addcmul(curvature, noise, grads, value=-1.0, out=noise)
    correction = torch.div(gap, info, out=info)
    plus(curvature, gap, times=-forget, out=curvature)
    plus_product(curvature, correction, gap, times=0.5 * forget * forget / numbers.kl_weight, out=curvature)
    curvature.clamp_(min=0.0)


def adam_move(v: Vectors, numbers: Numbers, scratch: Scratch) -> None:
    """One step of Adam."""
    if v.means.device.type == "cpu" and not torch.compiler.is_compiling():
        _torchs_adam(v, numbers)
        return
    v.first_moment.lerp_(v.grads, 1 - BETA1)
    v.second_moment.mul_(BETA2).addcmul_(v.grads, v.grads, value=1 - BETA2)
    root = torch.sqrt(v.second_moment, out=scratch[1]).add_(EPSILON * numbers.second_bias)
    size = -numbers.rate * numbers.second_bias / numbers.first_bias
    plus_quotient(v.means, v.first_moment, root, times=size, out=v.means)


def _torchs_adam(v: Vectors, numbers: Numbers) -> None:
    """What torch.optim.Adam(fused=True) calls on a CPU: one pass instead of five."""
    torch._fused_adam_(
        [v.means],
        [v.grads],
        [v.first_moment],
        [v.second_moment],
        [],
        [torch.tensor(numbers.step, device="cpu")],
        lr=numbers.rate,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=0.0,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )


def natural_move(v: Vectors, precision: Tensor, numbers: Numbers, scratch: Scratch) -> None:
    """Move the means by `rate` of a Newton step (the natural gradient of the objective), at most `rate` stds each.

    Adam moves every weight by its rate whatever its gradient, and the wandering of weights that do not matter is
    charged in the KL; a natural step moves them in proportion to their own posterior std.
    """
    v.first_moment.lerp_(v.grads, 1 - BETA1)
    total = plus(v.curvature, precision, times=numbers.kl_weight, out=scratch[0])  # KL weight / std²
    newton = torch.div(v.first_moment, total, out=scratch[1]).div_(numbers.first_bias)
    limit = total.div_(numbers.kl_weight).rsqrt_()
    torch.minimum(newton, limit, out=newton)
    torch.maximum(newton, limit.neg_(), out=newton)
    plus(v.means, newton, times=-numbers.rate, out=v.means)
