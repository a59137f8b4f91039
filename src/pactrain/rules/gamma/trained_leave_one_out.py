"""The loss that each training example would have if it had been left out, from one look at the trained network.

Training at γ ends where  Σ_j loss_j + |Δ|²/(2γ)  is least, Δ being the moves of the weights in stds of their priors.  Near that point
the network is linear in Δ.  With J_j the gradient of an output of example j, A = γ J Jᵀ, W the curvature of the losses in
the outputs and V = (A⁻¹ + W)⁻¹, leaving j out moves its outputs by

    v_j ∂loss_j/∂outputs_j,    v_j = V_jj / (1 − W_j V_jj)

which is one Newton step, and exact for squares.  A network that has learned example j from the others has a small v_j or a small
slope there; one that has memorised it has neither.  No example is held out and nothing is trained again.

Where m of n examples are looked at, each stands for n/m of them in W, and is left out as the single one that it is.  The kernel is taken to be
the same for all outputs, and is averaged over a few random directions among them; curvatures are those along the slopes.

Training that was ended early leaves slopes that do not balance the prior yet, and where examples are nearly remembered (1 − W_j V_jj small) what is
left of them counts many times over.  With `settle` the linear network is first taken to where training would end.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import AnyLoss
from pactrain.rules.gamma.example_kernel import NUMBERS, Examples, Shown, Unsuited
from pactrain.runtime.seeds import derive

DIRECTIONS = 2
"""Random directions among the outputs over which their kernel is averaged, at most."""

NUDGE = 0.01
"""Part of the weights' move from the prior's mean by which they are moved to see how the outputs follow."""

DRAWS = 16
"""Draws over which slopes and curvatures of the losses are averaged: it is under noise that they balance the prior."""

Drawn = Callable[[int], AbstractContextManager[Any]]


class Answer(NamedTuple):
    """What a network would make of examples, each left out."""

    loss: float
    slope: float  # of the loss as all outputs grow: above zero, the network is too sure of itself
    wrong: float  # share of them in another class than the one that their losses ask for; of numbers, their loss over that of one answer for all


class LeftOut:
    """Some of the training examples, which can be left out again and again while training goes on."""

    def __init__(
        self, posterior: Posterior, batches: Batches, loss: AnyLoss, n: int, seed: int, *, settle: bool = False
    ) -> None:
        self.posterior, self.n, self.seed, self.settle = posterior, n, seed, settle
        self.examples = Examples(posterior, batches, loss, seed)
        with self.examples.still():
            for shown in self.examples.shown:
                output = self.examples.outputs(shown[0])
                _, bent = self._derivatives(output, shown)  # some losses have no second derivative
                if settle and not (bool((bent > 0).all()) and torch.finfo(output.dtype).eps < NUDGE**2):
                    raise Unsuited  # settling takes a curvature, and outputs that show a small move
                if self.examples.count * output[0].numel() > NUMBERS:
                    raise Unsuited  # whole images as outputs

    def ask(self, gamma: float, drawn: Drawn | None = None) -> Answer:
        """What the examples' losses would be, each left out, for a posterior that was trained at `gamma`.

        `drawn(seed)` puts a draw into the network for the length of a block, if the posterior is not to do it itself.
        """
        with self.examples.still():
            outputs = [self.examples.outputs(batch) for batch, _, _ in self.examples.shown]
            slopes, curvatures = self._under_noise(drawn or self._sampled)
            directions = self._directions(outputs[0].shape[1:], slopes)
            kernel = gamma * self.examples.kernel(directions)
            curvatures = curvatures.clamp(min=0.0).double()
            weights = self.n / self.examples.count * curvatures
            root = weights.sqrt()
            inner = torch.eye(len(root), dtype=root.dtype, device=root.device) + root[:, None] * kernel * root
            left = root[:, None] * kernel
            own = (kernel.diagonal() - (left * torch.linalg.solve(inner, left)).sum(0)).clamp(min=0.0)
            slopes, rest = slopes.double(), torch.zeros_like(slopes, dtype=torch.float64)
            if self.settle:
                rest = self._rest(kernel, weights, slopes)
                slopes = slopes + curvatures[:, None] * rest
            moves = rest + (own / (1 - weights * own).clamp(min=1e-6))[:, None] * slopes
            loss, slope, wrong, constant, done = 0.0, 0.0, 0, 0.0, 0
            for (batch, picked, rows), output in zip(self.examples.shown, outputs, strict=True):
                moved = output.clone().reshape(len(output), -1)
                moved[rows] += moves[done : done + len(rows)].to(moved)
                if not self.settle:
                    wrong += int(_wrong(moved[rows], slopes[done : done + len(rows)]).sum())
                moved = moved.reshape(output.shape).requires_grad_()
                total = self.examples.losses(moved, batch)[picked].double().sum()
                loss += float(total.detach())
                grown = moved.detach()
                if self.settle:  # numbers are grown from their mean, wherever that is
                    mean = output[rows].mean(0)
                    grown = grown - mean
                    constant += float(self.examples.losses(mean.expand_as(output), batch)[picked].double().sum())
                slope += float((torch.autograd.grad(total, moved)[0] * grown).sum())
                done += len(rows)
        count = self.examples.count
        return Answer(loss / count, slope / count, loss / max(constant, 1e-300) if self.settle else wrong / count)

    def _rest(self, kernel: Tensor, weights: Tensor, slopes: Tensor) -> Tensor:
        """How the outputs would still change if training went on to its end: one Newton step of the linear network, exact for squares.

        The network of the prior's mean, linear around the trained weights, has the outputs  f − JΔ,  and at the end of training
        f' = f − JΔ − γ n/m K ∂loss/∂f'.
        """
        posterior, count = self.posterior, self.n / self.examples.count
        move = torch.cat([p.detach().reshape(-1) for p in posterior.means()]).to(posterior.prior_mean)
        move = NUDGE * (move - posterior.prior_mean)
        parts = []
        for shift in (move, -move):
            with torch.no_grad(), posterior.shifted(shift):
                outputs = [self.examples.outputs(batch) for batch, _, _ in self.examples.shown]
            picked = [o.reshape(len(o), -1)[rows] for o, (_, _, rows) in zip(outputs, self.examples.shown, strict=True)]
            parts.append(torch.cat(picked).double())
        along = (parts[0] - parts[1]) / (2 * NUDGE)
        inner = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device) + kernel * weights
        change: Tensor = torch.linalg.solve(inner, along + count * kernel @ slopes)
        return -change

    def _sampled(self, seed: int) -> AbstractContextManager[Any]:
        return self.posterior.sampled(torch.Generator(self.posterior.log_std.device).manual_seed(seed))

    def _under_noise(self, drawn: Drawn) -> tuple[Tensor, Tensor]:
        """Slopes of the losses in their outputs, and their curvature along these, averaged over draws of the posterior."""
        slopes = curvatures = torch.zeros(())
        for draw in range(DRAWS):
            with torch.no_grad(), drawn(derive(self.seed, "left out", draw)):
                outputs = [self.examples.outputs(batch) for batch, _, _ in self.examples.shown]
            found = [
                self._derivatives(output, shown) for output, shown in zip(outputs, self.examples.shown, strict=True)
            ]
            slopes = slopes + torch.cat([slope for slope, _ in found]) / DRAWS
            curvatures = curvatures + torch.cat([curvature for _, curvature in found]) / DRAWS
        return slopes, curvatures

    def _derivatives(self, output: Tensor, shown: Shown) -> tuple[Tensor, Tensor]:
        """The slope of each loss, and its curvature along that slope: along other directions a loss is flat, or soon will be."""
        batch, _, rows = shown
        output = output.detach().requires_grad_()
        slope = torch.autograd.grad(self.examples.losses(output, batch).sum(), output, create_graph=True)[0]
        flat = slope.detach().reshape(len(output), -1)
        along = (flat / flat.norm(dim=1, keepdim=True).clamp(min=1e-30)).reshape(output.shape)
        bent = None
        if slope.requires_grad:
            bent = torch.autograd.grad((slope * along).sum(), output, allow_unused=True)[0]
        bent = torch.zeros_like(output) if bent is None else bent * along
        return flat[rows], bent.reshape(len(output), -1)[rows].sum(1)

    def _directions(self, shape: torch.Size, slopes: Tensor) -> list[Tensor]:
        """Orthogonal unit vectors among the outputs, without their mean where the losses do not see it (as in a softmax)."""
        width = max(1, shape.numel())
        blind = width > 1 and bool(slopes.sum(1).abs().max() <= 1e-4 * slopes.abs().max())
        source = torch.Generator().manual_seed(derive(self.seed, "directions"))
        vectors = torch.randn(width, min(DIRECTIONS, width - blind), generator=source, dtype=torch.float64)
        if blind:
            vectors -= vectors.mean(0)
        spanning = torch.linalg.qr(vectors)[0].to(slopes)
        return [vector.reshape(shape) for vector in spanning.T]


def _wrong(scores: Tensor, slopes: Tensor) -> Tensor:
    """Which rows of scores have another class on top than the one whose score their loss asks to be larger?  One score alone tells by its sign."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0) != (slopes[:, 0] < 0)
    return (scores.argmax(1) != slopes.argmin(1)) & (slopes.amin(1) < 0)
