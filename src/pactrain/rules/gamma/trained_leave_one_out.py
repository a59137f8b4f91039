"""The loss that each training example would have if it had been left out, estimated at the trained network.

Training at γ ends where  Σ_j loss_j + |Δ|²/(2γ)  is least, Δ being the moves of the weights in stds of their priors.  Near that point
the network is linear in Δ.  With J_j the gradient of an output of example j, A = γ J Jᵀ, W the curvature of the losses in
the outputs and V = (A⁻¹ + W)⁻¹, leaving j out moves its outputs by

    v_j ∂loss_j/∂outputs_j,    v_j = V_jj / (1 − W_j V_jj)

which is one Newton step, and exact for squares.  A network that has learned example j from the others has a small v_j or a small
slope there; one that has memorised it has neither.  No example is held out and nothing is trained again.

Where m of n examples are looked at, each stands for n/m of them in W, and is left out as the single one that it is.  The kernel is taken to be
the same for all outputs, and is averaged over a few random directions among them; curvatures are those along the slopes.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.call_network import scores_of
from pactrain.problem.losses import Loss, per_example
from pactrain.rules.constants import DRAWS
from pactrain.rules.gamma.example_kernel import Examples
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import refusing
from pactrain.runtime.seeds import derive

DIRECTIONS = 2
"""Random directions among the outputs over which their kernel is averaged, at most."""

MOST_OUTPUTS = 1 << 24
"""Numbers in the outputs of all examples above which nothing is asked: these are whole images."""

Drawn = Callable[[int], AbstractContextManager[Any]]


class CannotLeaveOut(PactrainError):
    """The loss does not look at one row of the network's output for each example, so that none can be left out."""


class LeftOutEstimate(NamedTuple):
    """What a network would make of examples, each left out."""

    loss: float
    slope: float  # of the loss as all outputs grow: above zero, the network is too sure of itself
    wrong: float  # share of them in another class than the one that their losses ask for
    losses: Sequence[float] = ()  # of each

    def falls_clearly(self, before: "LeftOutEstimate") -> bool:
        """True if the loss is smaller than before by more than one standard error of the difference."""
        differences = np.subtract(before.losses, self.losses)
        error = differences.std() / math.sqrt(differences.size) if differences.size else 0.0
        return bool(before.loss - self.loss > error)


class LeaveOneOut:
    """Some of the training examples, whose left-out losses can be estimated again while training goes on."""

    def __init__(self, posterior: Posterior, batches: Batches, loss: Loss, n: int, seed: int) -> None:
        self.posterior, self.n, self.seed = posterior, n, seed
        self.examples = Examples(posterior, batches, loss, seed)
        self.rows = dict[int, Tensor]()  # of the output that belong to a batch's examples, by the batch's identity
        with self.examples.still():
            for batch, picked in self.examples.shown:
                output = self._output(batch)
                self.rows[id(batch)] = self._find_rows(output, batch)
                self._derivatives(output, batch, picked)  # some losses have no second derivative
                if self.examples.count * output[0].numel() > MOST_OUTPUTS:
                    raise CannotLeaveOut("the outputs of single examples are too large")

    def estimate(self, gamma: float, drawn: Drawn | None = None) -> LeftOutEstimate:
        """What the examples' losses would be, each left out, for a posterior that was trained at `gamma`.

        `drawn(seed)` puts a draw into the network for the length of a block, if the posterior is not to do it itself.
        """
        with self.examples.still():
            outputs = [self._output(batch) for batch, _ in self.examples.shown]
            slopes, curvatures = self._under_noise(drawn or self._sampled)
            moves = self._moves(gamma, self._kernel(outputs[0].shape[1:], slopes), slopes.double(), curvatures)
            losses, slope, wrong, done = list[float](), 0.0, 0, 0
            for (batch, picked), output in zip(self.examples.shown, outputs, strict=True):
                rows, part = self.rows[id(batch)][picked], slice(done, done + len(picked))
                moved = output.clone().reshape(len(output), -1)
                moved[rows] += moves[part].to(moved)
                wrong += int(_wrong(moved[rows], slopes[part]).sum())
                moved = moved.reshape(output.shape).requires_grad_()
                each = self._losses(moved, batch)[picked].double()
                losses += each.detach().tolist()
                slope += float((torch.autograd.grad(each.sum(), moved)[0] * moved.detach()).sum())
                done += len(picked)
        count = self.examples.count
        return LeftOutEstimate(sum(losses) / count, slope / count, wrong / count, losses)

    def _moves(self, gamma: float, kernel: Tensor, slopes: Tensor, curvatures: Tensor) -> Tensor:
        """How far the outputs of each example move when it is left out."""
        kernel = gamma * kernel
        weights = self.n / self.examples.count * curvatures.clamp(min=0.0).double()
        root = weights.sqrt()
        inner = torch.eye(len(root), dtype=root.dtype, device=root.device) + root[:, None] * kernel * root
        left = root[:, None] * kernel
        own = (kernel.diagonal() - (left * torch.linalg.solve(inner, left)).sum(0)).clamp(min=0.0)
        moves: Tensor = (own / (1 - weights * own).clamp(min=1e-6))[:, None] * slopes
        return moves

    # -- the network's output, and the losses as a function of it ---------------------------------------------------

    def _output_of(self, predict: Callable[..., Any], batch: Any) -> Tensor:
        """What the network is called for when the loss of a batch is computed."""
        seen: list[Any] = []

        def listening(*args: Any, **kwargs: Any) -> Any:
            seen.append(predict(*args, **kwargs))
            return seen[-1]

        loss = self.examples.loss
        loss(listening, batch)
        output = scores_of(seen[0]) if len(seen) == 1 and loss.of_outputs else next(iter(seen), None)
        if len(seen) != 1 or not isinstance(output, Tensor) or not output.is_floating_point() or not output.ndim:
            raise CannotLeaveOut(
                "the loss of a batch does not follow from one output of the network in floating-point numbers"
            )
        return output

    @torch.no_grad()
    def _output(self, batch: Any) -> Tensor:
        return self._output_of(refusing(self.posterior.model), batch)

    def _losses(self, output: Tensor, batch: Any) -> Tensor:
        """Of a batch, if the network gave this output."""
        return per_example(self.examples.loss, lambda *_, **__: output, batch)

    def _find_rows(self, output: Tensor, batch: Any) -> Tensor:
        """The row of the output that each example's loss looks at, found from the gradients of two weighted sums."""
        output = output.requires_grad_()
        losses = self._losses(output, batch)
        numbers = torch.arange(1.0, len(losses) + 1, dtype=torch.float64, device=losses.device)
        plain, weighted = (
            torch.autograd.grad((w * losses.double()).sum(), output, retain_graph=True)[0].reshape(len(output), -1)
            for w in (torch.ones_like(numbers), numbers)
        )
        size = plain.double().abs().sum(1)
        rows = size.nonzero()[:, 0]
        number = weighted.double().abs().sum(1)[rows] / size[rows]
        example = number.round().long() - 1
        one_each = len(rows) == len(losses) == len(example.unique()) and (number - number.round()).abs().max() <= 0.1
        in_order = not self.examples.alone or bool((example.diff() > 0).all())
        if not (one_each and in_order):
            raise CannotLeaveOut(
                "some example's loss does not follow one row of the network's output, or has no slope there"
            )
        return rows[example.argsort()]

    def _kernel(self, shape: torch.Size, slopes: Tensor) -> Tensor:
        """Of the outputs, averaged over directions among them."""

        def along(direction: Tensor, predict: Callable[..., Any], batch: Any) -> Tensor:
            rows = self.rows.get(id(batch), slice(None))  # a part of a table's batch has one row per example
            output = self._output_of(predict, batch)[rows]
            return (output * direction).reshape(len(output), -1).sum(1)

        directions = self._directions(shape, slopes)
        kernels = [self.examples.kernel(partial(along, direction), in_stds=True)[0] for direction in directions]
        return torch.stack(kernels).mean(0)

    def _directions(self, shape: torch.Size, slopes: Tensor) -> list[Tensor]:
        """Orthogonal unit vectors among the outputs, without their mean where the losses do not see it (as in a softmax)."""
        width = max(1, shape.numel())
        blind = width > 1 and bool(slopes.sum(1).abs().max() <= 1e-4 * slopes.abs().max())
        source = torch.Generator().manual_seed(derive(self.seed, "directions"))
        vectors = torch.randn(
            width, min(DIRECTIONS, width - blind), generator=source, dtype=torch.float64, device="cpu"
        )
        if blind:
            vectors -= vectors.mean(0)
        spanning = torch.linalg.qr(vectors)[0].to(slopes)
        return [vector.reshape(shape) for vector in spanning.T]

    def _sampled(self, seed: int) -> AbstractContextManager[Any]:
        return self.posterior.sampled(torch.Generator(self.posterior.log_std.device).manual_seed(seed))

    def _under_noise(self, drawn: Drawn) -> tuple[Tensor, Tensor]:
        """Slopes of the losses in their outputs, and their curvature along these, averaged over draws of the posterior: it is
        under noise that they balance the prior."""
        slopes = curvatures = torch.zeros((), device="cpu")
        for draw in range(DRAWS):
            with drawn(derive(self.seed, "left out", draw)):
                found = [self._derivatives(self._output(batch), batch, picked) for batch, picked in self.examples.shown]
            slopes = slopes + torch.cat([s for s, _ in found]) / DRAWS
            curvatures = curvatures + torch.cat([c for _, c in found]) / DRAWS
        return slopes, curvatures

    def _derivatives(self, output: Tensor, batch: Any, picked: Tensor) -> tuple[Tensor, Tensor]:
        """The slope of each picked loss, and its curvature along that slope: along other directions a loss is flat, or soon will be."""
        rows, output = self.rows[id(batch)][picked], output.requires_grad_()
        slope = torch.autograd.grad(self._losses(output, batch).sum(), output, create_graph=True)[0]
        flat = slope.detach().reshape(len(output), -1)
        along = (flat / flat.norm(dim=1, keepdim=True).clamp(min=1e-30)).reshape(output.shape)
        bent = torch.zeros_like(output)
        if slope.requires_grad:
            bent = torch.autograd.grad((slope * along).sum(), output, materialize_grads=True)[0] * along
        return flat[rows], bent.reshape(len(output), -1)[rows].sum(1)


def _wrong(scores: Tensor, slopes: Tensor) -> Tensor:
    """Which rows of scores have another class on top than the one whose score their loss asks to be larger; one score alone tells by its sign."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0) != (slopes[:, 0] < 0)
    return (scores.argmax(1) != slopes.argmin(1)) & (slopes.amin(1) < 0)
