"""The kernel of examples: inner products of the gradients of one value per example, at the network's present weights.

Near any weights a network is linear in them, and everything that leave-one-out needs of it is this kernel.  The value is an example's loss
before training and one of its outputs afterwards.

The gradient of a value in the weight of a linear layer is δ aᵀ, with a the row that went in and δ the gradient in what the layer made of it.
So where all weights sit in linear layers and each example is one row, no gradient of a weight is needed:

    ⟨∇_i, ∇_j⟩ = Σ_layers (δ_i · δ_j) (a_i · a_j + 1)

Any other network has a backward pass for each example, and some of its weights, picked at random, stand for all.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss, per_example
from pactrain.problem.module_modes import batch_norms, estimate_batch_norm, evaluating, hooked, restored_buffers
from pactrain.rules import constants
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.seeds import derive

WEIGHTS, MANY = 32_768, 1 << 20
"""Weights whose gradients are kept: many more than examples, so that inner products are exact to about a hundredth; and when there are many."""

AGREES = 1e-3
"""How close (relative, in the 2-norm) gradients put together from rows must come to autograd's own."""

COLUMNS = 16_384
"""Columns of which a copy in float64 is made at a time."""

Value = Callable[[Callable[..., Any], Any], Tensor]
"""From a way of calling the network and a batch to one number for each of its examples."""

Factors = tuple[nn.Linear, Tensor, Tensor]
"""A layer, the rows that went in, and the gradients that came back."""


class NotLinearLayers(Exception):
    """The network's weights do not all sit in linear layers that each see one row per example."""


class Examples:
    """Some of the training examples, which can be measured again while training goes on."""

    def __init__(self, posterior: Posterior, batches: Batches, loss: Loss, seed: int) -> None:
        self.posterior, self.batches, self.loss = posterior, batches, loss.guarded()
        source = torch.Generator().manual_seed(derive(seed, "examples"))
        self.alone = batches.table is not None  # examples need not share a forward pass
        room = (
            constants.EXAMPLES if self.alone else constants.EXAMPLES // 2
        )  # every gradient goes back through a pass that is shared
        self.shown: list[tuple[Any, Tensor]] = []  # a batch, and which of its examples are measured
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
        count = posterior.num_weights
        if count > MANY:  # a list of all would be long
            picked = torch.randint(count, (WEIGHTS,), generator=source)
        else:
            picked = torch.randperm(count, generator=source)[:WEIGHTS]
        self.weights = picked.unique().to(posterior.log_std.device)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Inside the block the network treats every example by itself, and the same way each time: BatchNorm, which mixes the rows of a
        batch, has statistics of the data."""
        model = self.posterior.model
        with restored_buffers(model) if batch_norms(model) else nullcontext(), evaluating(model):
            estimate_batch_norm(model, self.batches.ordered(), self.loss)
            yield

    def kernel(self, value: Value, *, in_stds: bool = False) -> tuple[Tensor, Tensor]:
        """⟨∇v_i, ∇v_j⟩ for all examples, in stds of the prior if asked for, and the values v_i; both in float64."""
        posterior = self.posterior
        stds = posterior.prior_log_std.detach().exp()[list(posterior.group_of_parameters)]  # one per parameter
        stds = stds if in_stds else torch.ones_like(stds)
        try:
            if self.alone:
                return self._of_linear_layers(value, stds.double().square().tolist())
        except NotLinearLayers:
            pass
        except (Refused, RuntimeError) as error:
            what = f"The network was not measured on {self.count} examples in one pass"
            gave_up(what, error, instead="each has a pass of its own, and only some of the weights are used")
        params, gradients, values = posterior.means(), list[Tensor](), list[Tensor]()
        scales = torch.cat([s.expand(p.numel()) for s, p in zip(stds, params, strict=True)])[self.weights]
        for one in self._one_by_one(value):
            found = torch.autograd.grad(one, params, retain_graph=not self.alone, allow_unused=True)
            parts = [torch.zeros_like(p) if g is None else g for g, p in zip(found, params, strict=True)]
            gradients.append(torch.cat([g.reshape(-1) for g in parts])[self.weights] * scales)
            values.append(one.detach().double())
        share = len(self.weights) / posterior.num_weights
        return _inner_products(torch.stack(gradients)) / share, torch.stack(values)

    def _one_by_one(self, value: Value) -> Iterator[Tensor]:
        """The value of each example, from a pass of its own unless examples share one."""
        network = refusing(self.posterior.model)
        for batch, picked in self.shown:
            together = None if self.alone else value(network, batch)
            for j in picked.tolist():
                yield together[j] if together is not None else value(network, tuple(t[j : j + 1] for t in batch))[0]

    def _of_linear_layers(self, value: Value, scales: Sequence[float]) -> tuple[Tensor, Tensor]:
        """The kernel and the values, without gradients of weights; raises `NotLinearLayers` for networks that are not made of linear layers."""
        model, params = self.posterior.model, self.posterior.means()
        scale = {id(p): s for p, s in zip(params, scales, strict=True)}
        parts, values = list[list[Factors]](), list[Tensor]()
        for batch, _ in self.shown:
            factors, found = factors_of(model, params, partial(value, refusing(model), batch))
            parts.append(factors)
            values.append(found)
        kernel: Any = 0.0
        for layer in zip(*parts, strict=True):
            inputs, slopes = (torch.cat([part[i] for part in layer]) for i in (1, 2))
            own = layer[0][0]
            inside = scale.get(id(own.weight), 0.0) * _inner_products(inputs) + scale.get(id(own.bias), 0.0)
            kernel = kernel + inside * _inner_products(slopes)
        return kernel, torch.cat(values).double()


def factors_of(
    model: nn.Module, params: Sequence[nn.Parameter], values: Callable[[], Tensor]
) -> tuple[list[Factors], Tensor]:
    """Rows and slopes of every linear layer with one of `params`, for the gradients of `values()`, and these values."""
    calls: list[Any] = []
    mine = {id(p) for p in params}
    layers = [m for m in model.modules() if isinstance(m, nn.Linear) and mine & {id(p) for p in m._parameters.values()}]
    if sorted(id(p) for m in layers for p in m._parameters.values() if id(p) in mine) != sorted(mine):
        raise NotLinearLayers
    with hooked((m, lambda layer, args, out: calls.append((layer, args, out))) for m in layers):
        found = values()
    if len(calls) != len(layers) or {layer for layer, _, _ in calls} != set(layers):
        raise NotLinearLayers
    for _, args, out in calls:
        rows = all(isinstance(t, Tensor) and t.ndim == 2 and len(t) == len(found) for t in (*args, out))
        if not (len(args) == 1 and rows and args[0].dtype == out.dtype and out.requires_grad):
            raise NotLinearLayers
    signs = 2.0 * torch.randint(2, found.shape, generator=torch.Generator().manual_seed(0)).to(found) - 1
    outputs = [out for _, _, out in calls]
    slopes, own = (torch.autograd.grad(found.sum(), t, retain_graph=True, allow_unused=True) for t in (outputs, params))
    signed = torch.autograd.grad((signs * found).sum(), outputs, allow_unused=True)
    gradients = dict(zip(map(id, params), own, strict=True))
    for (layer, (inputs,), _), slope, other in zip(calls, slopes, signed, strict=True):
        if slope is None or other is None or not _close(signs[:, None] * slope, other):  # rows of other examples
            raise NotLinearLayers
        for p, put_together in ((layer.weight, slope.T @ inputs.detach()), (layer.bias, slope.sum(0))):
            if id(p) in gradients and not _close(gradients[id(p)], put_together):
                raise NotLinearLayers
    return [
        (layer, args[0].detach(), slope) for (layer, args, _), slope in zip(calls, slopes, strict=True)
    ], found.detach()


def _close(own: Tensor | None, put_together: Tensor) -> bool:
    return own is not None and bool((put_together - own).norm() <= AGREES * own.norm() + 1e-12)


def _inner_products(rows: Tensor) -> Tensor:
    """Of all rows, in float64, some columns at a time."""
    total = torch.zeros(len(rows), len(rows), dtype=torch.float64, device=rows.device)
    for part in rows.split(COLUMNS, dim=1):
        exact = part.double()
        total.addmm_(exact, exact.T)
    return total
