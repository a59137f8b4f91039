"""The kernel of examples: inner products of the gradients of one value per example, at the network's present weights.

Near any weights a network is linear in them, and everything that leave-one-out needs of it is this kernel.  The value is an example's loss
before training and one of its outputs afterwards.  Some of the examples are looked at; of networks that are not made of linear layers,
some of the weights.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss, per_example
from pactrain.problem.module_modes import batch_norms, estimate_batch_norm, evaluating
from pactrain.rules import constants
from pactrain.rules.gamma.layer_factors import SharedGradients, Unlike, gram, joined, products, row_factors, tapped
from pactrain.rules.gamma.weight_gradients import (
    PickedWeights,
    own_weights,
    picked_weights,
    rows_at_once,
    with_own_weights,
)
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.seeds import derive
from pactrain.runtime.vmap import together
from pactrain.scan.prior_losses import convolves

WEIGHTS = 32_768
"""Weights, picked at random, whose gradients are kept: many more than examples, so that inner products are exact to about a hundredth."""

Value = Callable[[Callable[..., Any], Any], Tensor]
"""From a way of calling the network and a batch to one number for each of its examples."""

Pieces = Iterator[tuple[Sequence[Tensor | None], Tensor]]
"""Gradients of some examples, one entry per parameter with one row per example, and their values."""


class Examples:
    """Some of the training examples, which can be looked at again while training goes on."""

    def __init__(self, posterior: Posterior, batches: Batches, loss: Loss, seed: int) -> None:
        self.posterior, self.batches, self.loss = posterior, batches, loss.guarded()
        source = torch.Generator().manual_seed(derive(seed, "examples"))
        self.alone = batches.table is not None  # examples need not share a forward pass
        room = constants.EXAMPLES if self.alone else constants.SHARED_EXAMPLES
        self.shown: list[tuple[Any, Tensor]] = []  # a batch, and which of its examples are looked at
        with self.still(), torch.no_grad():
            for batch in batches.subset(room, int(torch.randint(2**31, (1,), generator=source))):
                losses = per_example(self.loss, refusing(posterior.model), batch)
                picked = torch.randperm(len(losses), generator=source)[:room].to(losses.device)
                if self.alone:
                    batch, picked = tuple(t[picked] for t in batch), torch.arange(len(picked), device=picked.device)
                self.shown.append((batch, picked))
                room -= len(picked)
                if room <= 0:
                    break
        self.count = sum(len(picked) for _, picked in self.shown)
        self.weights = picked_weights(posterior.num_weights, source, WEIGHTS)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Inside the block the network treats every example by itself, and the same way each time."""
        model = self.posterior.model
        with _independent_rows(model, self.batches, self.loss), evaluating(model):
            yield

    def kernel(self, value: Value, *, in_stds: bool = False) -> tuple[Tensor, Tensor]:
        """⟨∇v_i, ∇v_j⟩ for all examples, in stds of the prior if asked for, and the values v_i; both in float64."""
        found = self._of_linear_layers(value, in_stds=in_stds) if self.alone else None
        if found is not None:
            return found
        gradients, values = self._gradients(value)
        if in_stds:
            gradients *= self._prior_stds()
        return gram(gradients) * (self.posterior.num_weights / len(self.weights)), values

    def _of_linear_layers(self, value: Value, *, in_stds: bool) -> tuple[Tensor, Tensor] | None:
        """The kernel computed without gradients of weights, where every weight sits in a linear layer; None for other networks."""
        posterior, found = self.posterior, []
        scales = None
        if in_stds:
            variances = (2 * posterior.prior_log_std.detach().double()).exp().tolist()
            scales = [variances[group] for group in posterior.group_of_parameters]
        try:
            for batch, _ in self.shown:
                values = lambda batch=batch: value(refusing(posterior.model), batch)  # noqa: E731
                found.append(row_factors(posterior.model, posterior.means(), values))
            factors = [joined(layer) for layer in zip(*(f for f, _ in found), strict=True)]
            return products(factors, scales), torch.cat([v for _, v in found]).double()
        except Unlike:
            return None
        except (Refused, RuntimeError) as error:
            what = f"The network was not measured on {self.count} examples in one pass"
            gave_up(what, error, instead="each has a pass of its own, and only some of the weights are looked at")
            return None

    def _gradients(self, value: Value) -> tuple[Tensor, Tensor]:
        """Gradients at the picked weights, one row per example, and the values."""
        params = self.posterior.means()
        picked, values = PickedWeights(params, self.weights), list[Tensor]()
        gradients = params[0].new_empty(self.count, len(self.weights))
        for parts, found in self._pieces(value):
            picked.gather(parts, gradients[len(values) : len(values) + len(found)])
            values += found.detach().double().unbind()
        return gradients, torch.stack(values)

    def _pieces(self, value: Value) -> Pieces:
        """One pass for many examples where the layers allow it, otherwise one for each."""
        if not self.alone:
            yield from self._of_shared_passes(value)
            return
        at_once = rows_at_once(self.posterior.num_weights)
        if self.loss.of_outputs and at_once > 1 and not convolves(self.posterior.model):  # no quicker with convolutions
            found = self._together(value, at_once)
            first = together(lambda: next(found), "Gradients of single examples were")
            if first is not None:
                yield first
                yield from found
                return
        params = self.posterior.means()
        for batch, picked in self.shown:
            for j in picked.tolist():
                single = value(refusing(self.posterior.model), tuple(t[j : j + 1] for t in batch))
                yield torch.autograd.grad(single[0], params, allow_unused=True), single

    def _together(self, value: Value, at_once: int) -> Pieces:
        """Every example has weights of its own."""
        weights = dict(zip(self.posterior.names, self.posterior.means(), strict=True))
        for batch, picked in self.shown:
            for index in picked.split(at_once):
                own = own_weights(weights, len(index))
                values = value(with_own_weights(self.posterior.model, own), tuple(t[index] for t in batch))
                yield torch.autograd.grad(values.sum(), list(own.values()), allow_unused=True), values

    def _of_shared_passes(self, value: Value) -> Pieces:
        params = self.posterior.means()
        for batch, picked in self.shown:
            with tapped(self.posterior.model, params) as taps:
                values = value(refusing(self.posterior.model), batch)
            gradients = SharedGradients(params, taps, values)
            for j in picked.tolist():
                yield gradients.of(values[j]), values[j].reshape(1)

    def _prior_stds(self) -> Tensor:
        """Of the picked weights."""
        posterior = self.posterior
        ends = torch.tensor([at.stop for at in posterior.group_slices], device="cpu")
        group = torch.searchsorted(ends, self.weights, right=True)
        return posterior.prior_log_std.detach().exp()[group.to(posterior.prior_log_std.device)]


@contextmanager
def _independent_rows(model: nn.Module, batches: Batches, loss: Loss) -> Iterator[None]:
    """BatchNorm mixes the rows of a batch; statistics of the data, put back afterwards, keep them apart."""
    if not batch_norms(model):
        yield
        return
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        estimate_batch_norm(model, batches.ordered(), loss)
        yield
    finally:
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
