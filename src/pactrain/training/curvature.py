"""Training with posterior and prior stds in closed form.

At a minimum of  risk + KL·weight  over log std_i:

    std_i² = 1 / (h_i / weight + 1 / prior_std_g²)

with h_i the curvature of the risk under noise.  By Stein's lemma g_i ε_i / std_i (gradient at the draw times the noise)
is an unbiased estimate of h_i; its moving average with Lin, Schmidt and Khan's correction keeps the variance positive
("Handling the positive-definite constraint in the Bayesian learning rule", 2020).  The prior minimises the KL:

    prior_std_g² = mean over the group of std² + (mean − prior mean)²

Everything is done block by block (`blocks.py`), so that nothing the size of the network is allocated, and two threads share
the blocks.  Neither noise nor stds are stored: the noise times the std is the weight in place less the mean, and the std
follows from h; the posterior's log-stds are written when the network comes to rest, and until then their memory holds the draw.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor

from pactrain.distributions.gaussian import spread
from pactrain.distributions.posterior import Posterior
from pactrain.runtime import distributed
from pactrain.training.blocks import Blocks
from pactrain.training.flat_weights import FlatWeights
from pactrain.training.update_kernels import BETA1, BETA2, WORTH_COMPILING, adam_move, kernels, natural_move

WORTH_A_KERNEL = 16_384
"""Weights a group has on average from which calling a compiled kernel for each group pays."""

Moves = Literal["adam", "natural", "none"]
Work = Callable[[slice, Tensor, tuple[Tensor, ...], torch.Generator | None], None]


class CurvatureStds:
    """Draws weights, learns from their gradient, and keeps the curvature average that the stds follow from."""

    def __init__(
        self,
        posterior: Posterior,
        *,
        kl_weight: float,
        memory: float,
        log_std_range: tuple[float, float],
        first: float = 1.0,
        moves: Moves = "adam",
        steps: int = 0,
    ) -> None:
        self.posterior, self.kl_weight, self.memory, self.moves = posterior, kl_weight, memory, moves
        self.log_std_range = log_std_range
        self.flat = FlatWeights(posterior)
        self.blocks = Blocks(posterior.group_slices, self.flat.means)
        self._set_precisions()
        self.curvature = torch.empty_like(self.flat.means)
        for at, precision in zip(posterior.group_slices, self.precisions, strict=True):
            self.curvature[at] = first * kl_weight * precision  # the data's information to begin with
        size = 0 if moves == "none" else len(self.curvature)
        self.first_moment = torch.zeros(size, dtype=self.curvature.dtype, device=self.curvature.device)
        self.second_moment = torch.zeros_like(self.first_moment if moves == "adam" else self.first_moment[:0])
        weights, groups = len(self.curvature), len(posterior.groups)
        worth = steps * weights >= WORTH_COMPILING and (groups == 1 or weights >= WORTH_A_KERNEL * groups)
        found = kernels(self.curvature.dtype, self.curvature.device.type) if worth and moves != "none" else None
        self._kernels = found if distributed.largest(found is None) == 0 else None  # all processes alike
        self._drawn_now = False  # is the scratch of a network of one block still as drawing has left it: 1/std², ε/std?
        self.rest()

    # -- blocks ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _for_blocks(self, work: Work, seed: int | None = None) -> None:
        """Do `work(where, prior precision, scratch, source of noise)` for every block; the precision is one number (as a
        tensor), or a vector, which may be the third scratch, where the block spans groups."""
        self._drawn_now = False

        def with_precision(
            at: slice, groups: range, scratch: tuple[Tensor, ...], source: torch.Generator | None
        ) -> None:
            work(at, self._precision(at, groups, scratch[2]), scratch, source)

        self.blocks.each(with_precision, seed)

    def _precision(self, at: slice, groups: range, scratch: Tensor) -> Tensor:
        """1/prior_std² in a block: one number, or written out where the block spans groups."""
        if len(groups) == 1:
            return self._group_precisions[groups[0]]
        if self._all_precisions is not None:
            return self._all_precisions
        for group in groups:
            here = self.posterior.group_slices[group]
            scratch[max(0, here.start - at.start) : here.stop - at.start].fill_(self.precisions[group])
        return scratch

    # -- a step ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def draw(self, seed: int) -> None:
        """Put one draw of the posterior into the network."""
        flat, h, scale = self.flat, self.curvature, 1 / self.kl_weight

        def fill(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], source: torch.Generator | None) -> None:
            flat.draw[at].normal_(generator=source)

        def work(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], source: torch.Generator | None) -> None:
            information, noise, root = scratch
            torch.sqrt(torch.add(precision, h[at], alpha=scale, out=information), out=root)  # 1/std
            noise.normal_(generator=source)
            torch.addcdiv(flat.means[at], noise, root, out=flat.draw[at])
            if self.blocks.only_one:
                noise.mul_(root)

        if self._kernels is None:
            self._for_blocks(work, seed)
            self._drawn_now = self.blocks.only_one
        else:
            self._for_blocks(fill, seed)
            for at, numbers in self._numbers():
                self._kernels.draw(h[at], flat.means[at], flat.draw[at], numbers)
        flat.put()

    @contextmanager
    def drawn(self, seed: int) -> Iterator[None]:
        """One draw in the network for the length of the block; no memory is needed for it."""
        self.draw(seed)
        try:
            yield
        finally:
            self.rest()

    def learn(self, rate: float, step: int, *, stds: bool = True) -> None:
        """Take in the gradient at the draw: the curvature average, then the means.  Without `stds` the means alone, by
        the risk alone."""
        self.flat.take_grads()
        distributed.average(self.flat.grads)
        if self._kernels is not None and stds:
            self._learn_fused(rate, step)
            return
        g, m, m0, w, h = self.flat.grads, self.flat.means, self.posterior.prior_mean, self.flat.draw, self.curvature
        first, second = self.first_moment, self.second_moment
        weight, forget, drawn_now = self.kl_weight, 1 - self.memory, self._drawn_now

        def work(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], _: torch.Generator | None) -> None:
            a, b = scratch[:2]
            if stds:
                if not drawn_now:
                    torch.add(precision, h[at], alpha=1 / weight, out=a)  # 1/std²
                    torch.sub(w[at], m[at], out=b).mul_(a)  # ε / std
                torch.addcmul(h[at], b, g[at], value=-1.0, out=b)
                torch.div(b, a, out=a)
                h[at].sub_(b, alpha=forget).addcmul_(a, b, value=0.5 * forget * forget / weight).clamp_(min=0.0)
                g[at].addcmul_(torch.sub(m[at], m0[at], out=b), precision, value=weight)
            if self.moves == "adam":
                adam_move(m[at], g[at], first[at], second[at], rate=rate, step=step, scratch=b)
            elif self.moves == "natural":
                natural_move(m[at], g[at], first[at], h[at], precision, weight, rate=rate, step=step, scratch=(a, b))
            if self.moves != "none" and self.flat.adds_up:
                g[at].zero_()

        self._for_blocks(work)

    @torch.no_grad()
    def _learn_fused(self, rate: float, step: int) -> None:
        assert self._kernels is not None
        bias, second_bias = 1 - BETA1 ** (step + 1), math.sqrt(1 - BETA2 ** (step + 1))
        changing = (rate / bias, 1 / second_bias) if self.moves == "adam" else (rate, 1 / bias)
        vectors = [self.curvature, self.flat.grads, self.flat.means, self.posterior.prior_mean, self.flat.draw]
        vectors += [self.first_moment] + ([self.second_moment] if self.moves == "adam" else [])
        kernel = self._kernels.adam if self.moves == "adam" else self._kernels.natural
        for at, numbers in self._numbers(*changing):
            kernel(*(v[at] for v in vectors), numbers)

    def _numbers(self, *more: float) -> list[tuple[slice, Tensor]]:
        """Where each group stands, and the numbers that its kernels are called with."""
        shared = (1 / self.kl_weight, self.kl_weight, 1 - self.memory, *more, *(0.0 for _ in range(2 - len(more))))
        table = torch.tensor([(p, *shared) for p in self.precisions], dtype=torch.float64).to(self.curvature)
        return list(zip(self.posterior.group_slices, table.unbind(), strict=True))

    # -- between steps ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _set_precisions(self) -> None:
        """1/prior_std² of each group; for a network of one block, where calls count most, also of each weight."""
        precisions = torch.exp(-2 * self.posterior.prior_log_std.detach().double())
        self.precisions: list[float] = precisions.tolist()
        flat = self.flat.means
        self._group_precisions = precisions.to(flat).unbind()
        small = self.blocks.only_one
        self._all_precisions = spread(precisions.to(flat), flat, self.posterior.group_slices) if small else None

    @torch.no_grad()
    def update_prior(self) -> None:
        """Set the prior's stds to their best values, within the scanned range and below the knee, if it is learned."""
        posterior, flat, h = self.posterior, self.flat, self.curvature
        if not posterior.prior_log_std.requires_grad:
            return
        found: list[tuple[int, int, Tensor]] = []

        def work(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], _: torch.Generator | None) -> None:
            a, b = scratch[:2]
            torch.add(precision, h[at], alpha=1 / self.kl_weight, out=a).reciprocal_()
            torch.sub(flat.means[at], posterior.prior_mean[at], out=b)
            a.addcmul_(b, b)
            for i, group in enumerate(posterior.group_slices):
                start, stop = max(at.start, group.start), min(at.stop, group.stop)
                if start < stop:
                    found.append((i, start, a[start - at.start : stop - at.start].sum(dtype=torch.float64)))

        self._for_blocks(work)
        sums = torch.zeros(len(posterior.groups), dtype=torch.float64, device=h.device)
        for i, _, part in sorted(found, key=lambda item: item[:2]):  # in one order, whichever thread was first
            sums[i] += part
        sizes = torch.tensor([g.stop - g.start for g in posterior.group_slices], dtype=torch.float64)
        best = 0.5 * torch.log(sums / sizes.to(h.device).clamp(min=1))
        posterior.prior_log_std.copy_(best.clamp(*self.log_std_range))
        self._set_precisions()

    def rest(self) -> None:
        """Put the means into the network and the stds into the posterior."""
        log_std, h = self.posterior.log_std.detach(), self.curvature

        def work(at: slice, precision: Tensor, *_: object) -> None:
            torch.add(precision, h[at], alpha=1 / self.kl_weight, out=log_std[at]).log_().mul_(-0.5)

        self._for_blocks(work)
        self.flat.rest()

    def state(self) -> dict[str, Tensor]:
        """What has to be saved beside the posterior."""
        return {
            "means": self.flat.means,
            "curvature": self.curvature,
            "first_moment": self.first_moment,
            "second_moment": self.second_moment,
        }

    def best(self) -> dict[str, Tensor]:
        """What makes up the present posterior, as far as this knows it: all of `state` but the moments of the steps."""
        return {"means": self.flat.means, "curvature": self.curvature}

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state; the posterior must hold what was saved with it."""
        for name, mine in self.state().items():
            mine.copy_(state[name])
        self._set_precisions()
        self.flat.rest()

    def follow(self) -> None:
        """After means, curvatures or prior were changed from outside."""
        self._set_precisions()
        self.rest()
