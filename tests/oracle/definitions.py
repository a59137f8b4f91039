"""Independent ways to compute what pactrain computes: slow, float64, written from the definitions."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from pactrain import Posterior

Array = NDArray[np.float64]


def prior_std_of_each_weight(posterior: Posterior) -> Tensor:
    """One prior std a weight, float64."""
    sizes = torch.tensor([at.stop - at.start for at in posterior.group_slices])
    return posterior.prior_log_std.detach().double().exp().repeat_interleave(sizes)


def kl(posterior: Posterior) -> float:
    """KL by torch.distributions, weight by weight."""
    means = torch.cat([posterior.model.get_parameter(n).detach().double().reshape(-1) for n in posterior.names])
    q = Normal(means, posterior.log_std.detach().double().exp())
    p = Normal(posterior.prior_mean.double(), prior_std_of_each_weight(posterior))
    return float(kl_divergence(q, p).sum())


def log_moment(losses: Array, gamma: float) -> float:
    """ln mean exp(γ(mean − x)), with plain loops."""
    mean = sum(losses.tolist()) / len(losses)
    return math.log(sum(math.exp(gamma * (mean - x)) for x in losses.tolist()) / len(losses))


def autograd_step(
    posterior: Posterior, loss: Tensor, *, n: int, nats: float, gamma: float
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Gradients of loss + (nats + KL)/(γ n) by plain autograd over the textbook KL."""
    params = posterior.means()
    shift = torch.cat([p.reshape(-1) for p in params]) - posterior.prior_mean
    sizes = torch.tensor([at.stop - at.start for at in posterior.group_slices])
    prior = posterior.prior_log_std.repeat_interleave(sizes)
    terms = (torch.exp(2 * posterior.log_std) + shift**2) / (2 * torch.exp(2 * prior)) - 0.5 + prior - posterior.log_std
    total = loss + (nats + terms.sum()) / (gamma * n)
    grads = torch.autograd.grad(total, [*params, posterior.log_std, posterior.prior_log_std], allow_unused=True)
    return (
        [g if g is not None else torch.zeros_like(p) for g, p in zip(grads, params, strict=False)],
        grads[-2],
        grads[-1],
    )
