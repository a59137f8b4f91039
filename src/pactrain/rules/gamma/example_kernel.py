"""Some of the training examples: what the network says of each, their losses as a function of that, and the kernel of its gradients."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.sampling import try_with
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import AnyLoss, Loss, per_example, refusing_loss, scores_of
from pactrain.problem.module_modes import evaluating
from pactrain.rules.gamma.layer_factors import Factors, SharedGradients, Unlike, joined, products, row_factors, tapped
from pactrain.rules.gamma.linear_leave_one_out import NUMBERS_AT_ONCE, independent_rows, picked_weights
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.seeds import derive
from pactrain.runtime.vmap import rows_of_each, together
from pactrain.scan.prior_losses import convolves

EXAMPLES, ONE_BY_ONE, SHARED = 1024, 512, 256
"""Most examples that are looked at: where many go through the network together, each with weights of its own; where they go one
by one; where they share a forward pass, which each gradient goes back through.  Fewer of n overstate the loss a little."""

NUMBERS = 1 << 24
"""Most numbers of gradients that are held at a time: weights are picked at random where all of them would be more.  Most outputs, too."""

Shown = tuple[Any, Tensor, Tensor]
"""A batch, which of its examples are looked at, and the rows of the network's output that belong to these."""


class Opaque(PactrainError):
    """The loss does not look at one row of the network's output for each example, so that none can be left out."""


class Unsuited(Opaque):
    """Leaving out is not meant for such a loss or such outputs, as the rules say; nothing has gone wrong."""


class Examples:
    """Examples that can be looked at again and again while training goes on."""

    def __init__(self, posterior: Posterior, batches: Batches, loss: AnyLoss, seed: int) -> None:
        self.posterior, self.batches, self.loss = posterior, batches, refusing_loss(loss)
        source = torch.Generator().manual_seed(derive(seed, "left out"))
        self.alone = isinstance(batches, TensorBatches)  # examples need not share a forward pass
        self.shown: list[Shown] = []
        with self.still():
            sample = int(torch.randint(2**31, (1,), generator=source))
            self.quick = self._can_together(next(iter(batches.subset(1, sample))))
            room = EXAMPLES if self.quick else ONE_BY_ONE if self.alone else SHARED
            for batch in batches.subset(room, sample):
                rows = self._rows(batch)
                picked = torch.randperm(len(rows), generator=source)[:room].to(rows.device)
                self.shown.append((batch, picked, rows[picked]))
                room -= len(picked)
                if room <= 0:
                    break
        self.count = sum(len(picked) for _, picked, _ in self.shown)
        self.weights = picked_weights(posterior.num_weights, source, NUMBERS // max(1, self.count))

    @contextmanager
    def still(self) -> Iterator[None]:
        """Inside the block the network treats every example by itself, and the same way each time."""
        model = self.posterior.model
        with independent_rows(model, self.batches, self.loss), evaluating(model):
            yield

    # -- the network's output, and the losses as a function of it ---------------------------------------------------

    def output(self, batch: Any, model: Callable[..., Any] | None = None) -> Tensor:
        """What the network is called for when the loss of a batch is computed, by `model` in its place if given."""
        seen: list[Any] = []

        def predict(*args: Any, **kwargs: Any) -> Any:
            seen.append((model or refusing(self.posterior.model))(*args, **kwargs))
            return seen[-1]

        self.loss(predict, batch)
        output = scores_of(seen[0]) if len(seen) == 1 and isinstance(self.loss, Loss) else next(iter(seen), None)
        if len(seen) != 1 or not isinstance(output, Tensor) or not output.is_floating_point() or not output.ndim:
            raise Opaque("the loss of a batch does not follow from one output of the network in floating-point numbers")
        return output

    @torch.no_grad()
    def outputs(self, batch: Any) -> Tensor:
        """The same, of the network as it is, and nothing to go back through."""
        return self.output(batch)

    def losses(self, output: Tensor, batch: Any) -> Tensor:
        """Of a batch, if the network said this."""
        return per_example(self.loss, lambda *_, **__: output, batch)

    def _rows(self, batch: Any) -> Tensor:
        """The row of the output that each example's loss looks at, found from the gradients of two weighted sums."""
        output = self.outputs(batch).requires_grad_()
        losses = self.losses(output, batch)
        numbers = torch.arange(1.0, len(losses) + 1, dtype=torch.float64, device=losses.device)
        plain, weighted = (
            torch.autograd.grad((w * losses.double()).sum(), output, retain_graph=True)[0].reshape(len(output), -1)
            for w in (torch.ones_like(numbers), numbers)
        )
        size = plain.double().abs().sum(1)
        rows = size.nonzero()[:, 0]
        number = weighted.double().abs().sum(1)[rows] / size[rows]
        example = number.round().long() - 1
        if (
            len(rows) != len(losses)
            or (number - number.round()).abs().max() > 0.1
            or len(example.unique()) != len(rows)
        ):
            raise Opaque("some example's loss does not follow one row of the network's output, or has no slope there")
        return rows[example.argsort()]

    # -- the kernel -------------------------------------------------------------------------------------------------

    def kernel(self, directions: list[Tensor]) -> Tensor:
        """Inner products of the gradients of the outputs, in stds of the prior, averaged over directions among the outputs, in float64."""
        found = self._kernel_of_rows(directions)
        return self._kernel(directions) if found is None else found

    def _kernel_of_rows(self, directions: list[Tensor]) -> Tensor | None:
        """The kernel of a network of linear layers, where every example is one row; None for any other."""
        posterior = self.posterior
        if not self.alone or not all(torch.equal(picked, rows) for _, picked, rows in self.shown):
            return None
        variances = (2 * posterior.prior_log_std.detach().double()).exp().tolist()
        scales = [variances[group] for group in posterior.group_of_parameters]
        try:
            parts = [products(self._factors(direction), scales) for direction in directions]
        except Unlike:  # other layers; the gradients themselves take any
            return None
        except (Refused, RuntimeError) as error:
            what = "The trained network was not measured on many examples in one pass"
            gave_up(what, error, instead="each has a pass of its own")
            return None
        return torch.stack(parts).mean(0)

    def _factors(self, direction: Tensor) -> list[Factors]:
        """Of the gradients of the outputs in one direction, one row per example."""
        found = []
        for batch, picked, _ in self.shown:
            rows = tuple(t[picked] for t in batch)
            values = lambda rows=rows: (self.output(rows) * direction).reshape(len(rows[0]), -1).sum(1)  # noqa: E731
            found.append(row_factors(self.posterior.model, self.posterior.means(), values)[0])
        return [joined(layer) for layer in zip(*found, strict=True)]

    def _kernel(self, directions: list[Tensor]) -> Tensor:
        """The same for any network, from the gradients themselves."""
        params = self.posterior.means()
        edges = torch.tensor([0, *itertools.accumulate(p.numel() for p in params)])
        cuts = torch.searchsorted(self.weights, edges).tolist()
        places = [
            (self.weights[a:b] - start).to(params[0].device)
            for a, b, start in zip(cuts, cuts[1:], edges.tolist(), strict=False)
        ]
        total = torch.zeros(self.count, self.count, dtype=torch.float64, device=params[0].device)
        gradients, stds = params[0].new_empty(self.count, len(self.weights)), self._prior_stds()
        for direction in directions:
            gradients.zero_()
            done = 0
            for size, parts in self._gradients(direction):
                for g, at, a, b in zip(parts, places, cuts, cuts[1:], strict=False):
                    if g is not None:
                        gradients[done : done + size, a:b] = g.reshape(size, -1).index_select(1, at)
                done += size
            gradients *= stds
            total += gradients @ gradients.T
        for p in params:
            if p.grad is not None:
                p.grad.zero_()
        return total * (self.posterior.num_weights / len(self.weights) / len(directions))

    def _gradients(self, direction: Tensor) -> Iterator[tuple[int, Sequence[Tensor | None]]]:
        """Gradients of the outputs in one direction, for some examples at a time: how many, and one row per example."""
        if self.alone and self.quick:
            yield from self._together(direction)
            return
        for batch, picked, rows in self.shown:
            if self.alone:
                for j in picked.tolist():
                    own = self.output(tuple(t[j : j + 1] for t in batch))[0]
                    yield 1, self._own_gradients((own * direction).sum())
                continue
            params = self.posterior.means()
            with tapped(self.posterior.model, params) as taps:
                output = self.output(batch)
            values = (output[rows] * direction).reshape(len(rows), -1).sum(1)
            gradients = SharedGradients(params, taps, values)
            for value in values:
                yield 1, gradients.of(value)

    def _own_gradients(self, value: Tensor) -> list[Tensor | None]:
        """Gradients of one value, in the memory that training has for gradients."""
        params = self.posterior.means()
        for p in params:
            if p.grad is not None:
                p.grad.zero_()
        value.backward(inputs=params)
        return [p.grad for p in params]

    def _together(self, direction: Tensor) -> Iterator[tuple[int, Sequence[Tensor | None]]]:
        """Every example has weights of its own, so that one backward pass gives the gradients of each."""
        posterior = self.posterior
        weights = {name: p.detach() for name, p in zip(posterior.names, posterior.means(), strict=True)}
        at_once = max(1, NUMBERS_AT_ONCE // posterior.num_weights)
        for batch, picked, _ in self.shown:
            for index in picked.split(at_once):
                own = {name: w.expand(len(index), *w.shape).requires_grad_() for name, w in weights.items()}
                output = self._of_each(own, tuple(t[index] for t in batch))
                value = (output * direction).sum()
                yield len(index), torch.autograd.grad(value, list(own.values()), allow_unused=True)

    def _of_each(self, own: dict[str, Tensor], rows: tuple[Tensor, ...]) -> Tensor:
        """Outputs of examples with weights of their own, which have one more dimension than the network's."""

        def one(weights: dict[str, Tensor], *example: Tensor) -> Tensor:
            return scores_of(try_with(self.posterior.model, weights, tuple(t[None] for t in example)))

        return self.output(rows, lambda *inputs: rows_of_each(one, own, *inputs))

    def _can_together(self, batch: Any) -> bool:
        """Do layers and loss take examples with weights of their own?  (Convolutions do, but not any quicker.)"""
        posterior = self.posterior
        few = 2 * posterior.num_weights <= NUMBERS_AT_ONCE
        if not (self.alone and few and isinstance(self.loss, Loss)) or convolves(posterior.model):
            return False
        own = {n: p.detach().expand(2, *p.shape) for n, p in zip(posterior.names, posterior.means(), strict=True)}
        rows = tuple(t[:1].expand(2, *t.shape[1:]) for t in batch)
        return together(lambda: self._of_each(own, rows), "Outputs of single examples were") is not None

    def _prior_stds(self) -> Tensor:
        posterior = self.posterior
        ends = torch.tensor([at.stop for at in posterior.group_slices])
        group = torch.searchsorted(ends, self.weights, right=True)
        return posterior.prior_log_std.detach().exp()[group.to(posterior.prior_log_std.device)]
