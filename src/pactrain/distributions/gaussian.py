"""Diagonal Gaussians over a flat vector of weights, and the KL divergence between two of them.

Weights are laid out so that every prior group is one contiguous slice.  With posterior N(m, s²) and prior N(m0, p_g²):

    KL = Σ_i [ (s_i² + (m_i − m0_i)²) / (2 p_g²) − ½ + ln(p_g / s_i) ]
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

Slices = Sequence[slice]
BLOCK = 4096
PIECE = 1 << 20
SMALL = 1 << 18
"""Weights up to which calls count more than memory, so that all groups are worked on together."""

ZERO = torch.zeros((), dtype=torch.float64, device="cpu")


def group_sums(values: Tensor, groups: Slices) -> Tensor:
    """Sum of `values` over each group, accumulated in float64."""
    return torch.stack(
        [sum((values[p].sum(dtype=torch.float64) for p in pieces(g)), start=ZERO.to(values.device)) for g in groups]
    )


def block_sum(values: Tensor) -> Tensor:
    """The sum of a vector: blocks in its own precision, their sums in float64.  As good as needed for training, and it
    makes no copy in float64 as `group_sums` does."""
    whole = len(values) // BLOCK * BLOCK
    return values[:whole].view(-1, BLOCK).sum(1).sum(dtype=torch.float64) + values[whole:].sum(dtype=torch.float64)


def spread(per_group: Tensor, like: Tensor, groups: Slices) -> Tensor:
    """One value per group written out to one value per weight."""
    out = torch.empty_like(like)
    for value, g in zip(per_group.to(like.dtype), groups, strict=True):
        out[g] = value
    return out


def kl_by_group(mean_shift: Tensor, log_std: Tensor, prior_log_std: Tensor, groups: Slices) -> Tensor:
    """KL of each group in nats, computed in float64.  `mean_shift` is mean − prior mean; all flat, one entry per weight.

    Written with u = ln(std / prior std) and expm1, so that weights at their prior cost exactly nothing:
    ½ (e^{2u} − 1) − u + ½ (mean_shift / prior std)²
    """
    out = torch.zeros(len(groups), dtype=torch.float64, device=log_std.device)
    for i, (prior, group) in enumerate(zip(prior_log_std.detach().double().tolist(), groups, strict=True)):
        for g in pieces(group):
            u, shift = log_std[g].double() - prior, mean_shift[g].double()
            terms = torch.expm1(2 * u).mul_(0.5).sub_(u)
            out[i] += terms.addcmul_(shift, shift, value=0.5 * math.exp(-2 * prior)).sum()
    return out


def kl_by_group_at_once(mean_shift: Tensor, log_std: Tensor, prior_log_std: Tensor, groups: Slices) -> Tensor:
    """KL of each group in nats by a few operations on all weights at once: quicker than `kl_by_group` for small networks.

    >>> shift, log_std, prior = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3), torch.zeros(2)
    >>> kl_by_group_at_once(shift, log_std, prior, [slice(0, 1), slice(1, 3)]).tolist()
    [0.5, 6.5]
    """
    prior, log_std, shift = prior_log_std.detach().double(), log_std.double(), mean_shift.double()
    u = log_std - spread(prior, log_std, groups)
    terms = torch.expm1(2 * u).mul_(0.5).sub_(u)
    terms.addcmul_(spread(torch.exp(-2 * prior), log_std, groups), shift * shift, value=0.5)
    return torch.stack([terms[g].sum() for g in groups])


def pieces(group: slice) -> Iterator[slice]:
    """A slice in parts, so that work on one of them needs little memory."""
    for start in range(group.start, group.stop, PIECE):
        yield slice(start, min(start + PIECE, group.stop))


class Draw(torch.autograd.Function):
    """Weights mean + std·noise, with the gradients in closed form: g for a mean, g·std·noise for its log-std.

    `noise` is used up.  Autograd over the same formula would keep three vectors and fill a fourth for every parameter.
    """

    @staticmethod
    def forward(ctx: Any, log_std: Tensor, noise: Tensor, where: Slices, *means: Tensor) -> tuple[Tensor, ...]:
        shift = noise.mul_(log_std.exp())
        ctx.where = where
        ctx.save_for_backward(shift)
        return tuple(m + shift[at].view_as(m).to(m.dtype) for m, at in zip(means, where, strict=True))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (shift,) = ctx.saved_tensors
        for_log_std = torch.empty_like(shift)
        for grad, at in zip(grads, ctx.where, strict=True):
            torch.mul(shift[at], grad.reshape(-1), out=for_log_std[at])
        return for_log_std, None, None, *grads


class GaussianKL(torch.autograd.Function):
    """The total KL, with gradients in closed form: no graph over the weights is kept.

    `means` are the tensors that receive the gradient of the mean.  While they hold a draw (mean + shift), a hook on them
    turns every gradient g into g·shift for the log-stds, which is right for the loss but not for the KL; so the KL's own
    share is taken out again.  `draw_shift` tells the shift at the time of the backward pass, None if there is no draw.
    """

    @staticmethod
    def forward(
        ctx: Any,
        log_std: Tensor,
        prior_log_std: Tensor,
        mean_shift: Tensor,
        draw_shift: Callable[[], Tensor | None],
        groups: Slices,
        *means: Tensor,
    ) -> Tensor:
        excess = torch.empty_like(log_std)  # (std / prior std)² − 1
        total, slopes = torch.zeros((), dtype=torch.float64, device=log_std.device), []
        for prior, g in zip(prior_log_std.detach().double().tolist(), groups, strict=True):
            u = log_std[g] - prior
            torch.expm1(torch.mul(u, 2, out=excess[g]), out=excess[g])
            square = math.exp(-2 * prior) * block_sum(mean_shift[g].square())
            total = total + 0.5 * (block_sum(torch.sub(excess[g], u, alpha=2, out=u)) + square)
            slopes.append(-(block_sum(excess[g]) + square))
        ctx.groups, ctx.mean_shift, ctx.draw_shift = groups, mean_shift, draw_shift
        ctx.slopes = torch.stack(slopes)
        ctx.shapes = [(m.shape, m.dtype) for m in means]
        ctx.save_for_backward(excess, prior_log_std)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        excess, prior_log_std = ctx.saved_tensors
        groups, mean_shift, draw_shift = ctx.groups, ctx.mean_shift, ctx.draw_shift()
        weight = float(grad)
        grad_mean, grad_log_std = torch.empty_like(mean_shift), weight * excess
        grad_prior = (weight * ctx.slopes).to(prior_log_std)
        for prior, g in zip(prior_log_std.double().tolist(), groups, strict=True):
            torch.mul(mean_shift[g], weight * math.exp(-2 * prior), out=grad_mean[g])
        if draw_shift is not None:
            grad_log_std.addcmul_(grad_mean, draw_shift, value=-1)
        pieces, start = [], 0
        for shape, dtype in ctx.shapes:
            stop = start + shape.numel()
            pieces.append(grad_mean[start:stop].view(shape).to(dtype))
            start = stop
        return grad_log_std, grad_prior, None, None, None, *pieces


def log_density_ratio(
    weights_shift: Tensor, posterior_noise: Tensor, log_std: Tensor, prior_log_std: Tensor, groups: Slices
) -> Tensor:
    """ln dQ/dP at one draw h = m + s·ε, float64.  `weights_shift` is h − m0, `posterior_noise` is ε.

    ln dQ/dP(h) = Σ_i [ ln(p_g / s_i) − ε_i²/2 + (h_i − m0_i)² / (2 p_g²) ]
    """
    prior = prior_log_std.double()
    sizes = torch.tensor([g.stop - g.start for g in groups], dtype=torch.float64, device=log_std.device)
    terms = sizes * prior - group_sums(log_std, groups)
    terms = terms - 0.5 * group_sums(posterior_noise.square(), groups)
    return (terms + 0.5 * group_sums(weights_shift.square(), groups) * torch.exp(-2 * prior)).sum()
