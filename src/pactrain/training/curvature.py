"""Training with posterior and prior stds in closed form.

At a minimum of  risk + KL·weight  over log std_i:

    std_i² = 1 / (h_i / weight + 1 / prior_std_g²)

with h_i the curvature of the risk under noise.  By Stein's lemma g_i ε_i / std_i (gradient at the draw times the noise)
is an unbiased estimate of h_i; its moving average with Lin, Schmidt and Khan's correction keeps the variance positive
("Handling the positive-definite constraint in the Bayesian learning rule", 2020).  The prior minimises the KL:

    prior_std_g² = mean over the group of std² + (mean − prior mean)²

Everything is done block by block (`cache_blocks.py`), so that nothing the size of the network is allocated, and two threads share
the blocks.  Neither noise nor stds are stored: the noise times the std is the weight in place less the mean, and the std
follows from h.  The posterior's log-stds are written whenever the network comes to rest, at the end of an epoch.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from pactrain.distributions.gaussian import spread
from pactrain.distributions.posterior import Posterior
from pactrain.runtime import distributed
from pactrain.runtime.errors import TrainingError
from pactrain.runtime.seeds import draw_normal
from pactrain.training.cache_blocks import Blocks
from pactrain.training.flat_weights import FlatWeights
from pactrain.training.update_formulas import Moves, Numbers, Vectors, draw_weights, information, numbers_of, update
from pactrain.training.update_kernels import kernels

WORTH_COMPILING = 5e9
"""Weights times steps from which the seconds that compiling takes are won back (about 3 ns a weight and step on a CPU)."""

WORTH_A_KERNEL = 16_384
"""Weights a group has on average from which calling a compiled kernel for each group pays."""

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
        self.curvature, self.first = torch.empty_like(self.flat.means), first
        self._forget()
        size = 0 if moves == "none" else len(self.curvature)
        self.first_moment = torch.zeros(size, dtype=self.curvature.dtype, device=self.curvature.device)
        self.second_moment = torch.zeros_like(self.first_moment if moves == "adam" else self.first_moment[:0])
        weights, groups = len(self.curvature), len(posterior.groups)
        worth = steps * weights >= WORTH_COMPILING and (groups == 1 or weights >= WORTH_A_KERNEL * groups)
        found = kernels(self.curvature.dtype, self.curvature.device.type, moves) if worth and moves != "none" else None
        self._kernels = found if distributed.largest(found is None) == 0 else None  # all processes alike
        self._drawn_now = False  # is the scratch of a network of one block still as drawing has left it: 1/std², ε/std?
        self.rest()

    @torch.no_grad()
    def _forget(self) -> None:
        """Begin with what the prior knows: the data's information is a small part of the prior's."""
        start = self.first * self.kl_weight
        if not start * max(map(float, self.precisions), default=0.0) < torch.finfo(self.curvature.dtype).max:
            raise TrainingError(
                "the weights cannot bear any noise: the loss of the untrained network changes without limit, or is not finite, "
                "however little they move; look for a loss without a lower limit, and for huge values in the inputs and targets"
            )
        if self.posterior.units is not None:
            torch.mul(self._every_precision(), start, out=self.curvature)
            return
        for at, precision in zip(self.posterior.group_slices, self.precisions, strict=True):
            self.curvature[at] = start * precision

    @torch.no_grad()
    def restart(self) -> None:
        """Start again from a changed prior, which may have a std for each weight."""
        self._set_precisions()
        self._forget()
        self.first_moment.zero_()
        self.second_moment.zero_()
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
        if self._all_precisions is not None:
            return self._all_precisions[at]
        if len(groups) == 1:
            return self._group_precisions[groups[0]]
        for group in groups:
            here = self.posterior.group_slices[group]
            scratch[max(0, here.start - at.start) : here.stop - at.start].fill_(self.precisions[group])
        return scratch

    # -- a step ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def draw(self, seed: int) -> None:
        """Put one draw of the posterior into the network."""
        v, weight, keep = self._vectors(), self.kl_weight, self.blocks.only_one

        def fill(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], source: torch.Generator | None) -> None:
            draw_normal(v.draw[at], source)

        def work(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], source: torch.Generator | None) -> None:
            info, noise, root = scratch
            draw_normal(noise, source)
            draw_weights(v.curvature[at], v.means[at], noise, precision, weight, out=v.draw[at], scratch=(info, root))
            if keep:
                noise.mul_(root)

        if self._kernels is None or self.posterior.units is not None:
            self._for_blocks(work, seed)
            self._drawn_now = keep
        else:
            self._for_blocks(fill, seed)
            self._for_groups(self._kernels.draw, self._numbers())
        self.flat.put()

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
        numbers, noise_ready = self._numbers(rate, step), self._drawn_now
        if self._kernels is not None and stds and self.posterior.units is None:
            self._for_groups(self._kernels.update, numbers)
            return
        v, moves, clear = self._vectors(), self.moves, self.moves != "none" and self.flat.adds_up

        def work(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], _: torch.Generator | None) -> None:
            part, two = v.part(at), (scratch[0], scratch[1])
            update(part, precision, numbers, moves, stds=stds, clear=clear, scratch=two, noise_ready=noise_ready)

        self._for_blocks(work)

    def _vectors(self) -> Vectors:
        flat, posterior = self.flat, self.posterior
        moments = self.first_moment, self.second_moment
        return Vectors(self.curvature, flat.grads, flat.means, posterior.prior_mean, flat.draw, *moments)

    def _numbers(self, rate: float = 0.0, step: int = 0) -> Numbers:
        return numbers_of(step, kl_weight=self.kl_weight, memory=self.memory, rate=rate)

    @torch.no_grad()
    def _for_groups(self, kernel: Callable[[Vectors, Tensor, Tensor], None], numbers: Numbers) -> None:
        """Call a compiled kernel for every group."""
        v, all_numbers = self._vectors(), torch.tensor(numbers, dtype=torch.float64, device="cpu").to(self.curvature)
        for at, precision in zip(self.posterior.group_slices, self._group_precisions, strict=True):
            kernel(v.part(at), precision, all_numbers)

    # -- between steps ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _set_precisions(self) -> None:
        """1/prior_std² of each group; for a network of one block, where calls count most, also of each weight, and where the prior
        has a unit for each."""
        precisions = torch.exp(-2 * self.posterior.prior_log_std.detach().double())
        self.precisions: list[float] = precisions.tolist()
        flat = self.flat.means
        self._group_precisions = precisions.to(flat).unbind()
        written_out = self.blocks.only_one or self.posterior.units is not None
        self._all_precisions = self._every_precision() if written_out else None

    def _every_precision(self) -> Tensor:
        """1/prior_std² of each weight."""
        posterior = self.posterior
        at_groups = torch.exp(-2 * posterior.prior_log_std.detach().double())
        each = spread(at_groups.to(self.flat.means), self.flat.means, posterior.group_slices)
        return each if posterior.units is None else each / posterior.units.square()

    @torch.no_grad()
    def update_prior(self) -> None:
        """Set the prior's stds to their best values, within the scanned range and below the knee, if it is learned."""
        posterior, flat, h = self.posterior, self.flat, self.curvature
        if not posterior.prior_log_std.requires_grad:
            return
        found: list[tuple[int, int, Tensor]] = []

        def work(at: slice, precision: Tensor, scratch: tuple[Tensor, ...], _: torch.Generator | None) -> None:
            a, b = scratch[:2]
            information(h[at], precision, self.kl_weight, out=a).reciprocal_()
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
        sizes = torch.tensor([g.stop - g.start for g in posterior.group_slices], dtype=torch.float64, device="cpu")
        best = 0.5 * torch.log(sums / sizes.to(h.device).clamp(min=1))
        posterior.prior_log_std.copy_(best.clamp(*self.log_std_range))
        self._set_precisions()

    def rest(self) -> None:
        """Put the means into the network and the stds into the posterior."""
        log_std, h = self.posterior.log_std.detach(), self.curvature

        def work(at: slice, precision: Tensor, *_: object) -> None:
            information(h[at], precision, self.kl_weight, out=log_std[at]).log_().mul_(-0.5)

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
        """The part of `state` that describes the present posterior: all but the moments of the steps."""
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
