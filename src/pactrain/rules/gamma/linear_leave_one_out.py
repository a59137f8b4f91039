"""How far the data should move the weights: leave-one-out of the network made linear at its initial weights.

Training with the KL to a Gaussian prior is then ridge regression in the kernel of examples.  Write every loss as the square of a
residual, loss_j = s_j², with the gradient ∇s_j = ∇loss_j / 2s_j and K_ij = ⟨∇s_i, ∇s_j⟩.  Minimising  Σ_j loss_j + ρ |Δ|²,
ρ = 1/(2 γ std²),  leaves the residual of an example that has been left out at

    s_j' = [(K + ρ)⁻¹ s]_j / [(K + ρ)⁻¹]_jj

for all examples and all ρ from one decomposition of K, exactly if the loss is a square.  The gain K̄/ρ, with K̄ the mean of K's diagonal,
says how much of a residual its own example may explain; it has no units, whatever the scale of loss, features and prior.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss, per_example
from pactrain.rules.constants import CLASS_GAIN
from pactrain.rules.gamma.example_kernel import Examples
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import gave_up

GAINS = np.logspace(-2, 5, 57)
"""Gains that are tried."""

SMALLEST_LOSS, SMALLEST_SHIFTED = 1e-6, 1e-2
"""Part of the mean loss below which an example's loss counts as that, since its residual is nearly zero and so is its gradient; the same for
losses that may be negative, whose gradient does not vanish at the smallest."""


@dataclass(frozen=True)
class Linearised:
    """The kernel's scale, and the loss of left-out examples at each gain: how far the data may move the weights."""

    scale: float  # K̄
    left_out: tuple[float, ...]  # at each of GAINS
    errors: tuple[float, ...]  # standard error of its difference to the smallest of them
    classes: bool = False  # whether these are losses of classification

    @property
    def gain(self) -> float:
        """The gain at which training begins: the best, for classification at most `CLASS_GAIN`, from where the search goes on."""
        return min(self.best_gain(), CLASS_GAIN) if self.classes else self.best_gain()

    def best_gain(self) -> float:
        """The least gain at which left-out examples are predicted as well as at any, by one standard error."""
        best = min(self.left_out)
        return next(float(g) for g, v, e in zip(GAINS, self.left_out, self.errors, strict=True) if v - e <= best)

    def first_gamma(self, prior_std: float) -> float:
        """The γ of that gain."""
        return self.gain / (2 * self.scale) / (prior_std * prior_std)

    def first_left_out(self) -> float:
        """The left-out loss at that gain."""
        return float(np.interp(self.gain, GAINS, self.left_out))


def linearise(posterior: Posterior, batches: Batches, loss: Loss, seed: int) -> Linearised | None:
    """Measure the linear network on some of the examples; None, with a note, if that cannot be done."""
    try:
        examples = Examples(posterior, batches, loss, seed)
        with examples.still():
            kernel, losses = examples.kernel(lambda predict, batch: per_example(examples.loss, predict, batch))
    except (PactrainError, RuntimeError) as error:  # network or loss take no single row, or no backward pass here
        _not_measured(error)
        return None
    usable = torch.isfinite(losses) & torch.isfinite(kernel.diagonal())
    kernel, losses = kernel[usable][:, usable], losses[usable]
    if not len(losses) or not bool(kernel.diagonal().any()):
        _not_measured("no example has a finite loss with a gradient")
        return None
    negative = bool(losses.min() < 0)  # as a likelihood's may be: then residuals are measured from the smallest
    losses = losses - losses.min().clamp(max=0.0)
    losses = losses.clamp(min=(SMALLEST_SHIFTED if negative else SMALLEST_LOSS) * float(losses.mean()) + 1e-300)
    residuals = losses.sqrt()
    found = leave_out_curve((kernel / (4 * residuals[:, None] * residuals)).cpu(), residuals.cpu())
    return replace(found, classes=loss.is_classification(examples.shown[0][0]))


def _not_measured(why: Exception | str) -> None:
    what = "How far the data should move the weights (γ) was not measured on the untrained network"
    gave_up(what, why, instead="the largest γ of the rules is used, which may fit noise")


def leave_out_curve(kernel: Tensor, residuals: Tensor) -> Linearised:
    """The left-out loss at every gain, from one decomposition."""
    values, vectors = torch.linalg.eigh(kernel)  # numpy would not keep to torch's number of threads
    values, scale = values.clamp(min=0.0), float(kernel.diagonal().mean())
    inverse = 1 / (values[:, None] + scale / torch.from_numpy(GAINS))  # one column per gain
    pulls = vectors @ (inverse * (vectors.T @ residuals)[:, None])
    squares = (pulls / (vectors.square() @ inverse)).square().T
    losses = squares.mean(1)
    errors = (squares - squares[losses.argmin()]).std(1, correction=0) / math.sqrt(len(residuals))
    return Linearised(scale, tuple(losses.tolist()), tuple(errors.tolist()))
