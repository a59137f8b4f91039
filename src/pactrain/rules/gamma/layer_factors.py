"""Gradients of single examples where weights sit in linear layers: products of what goes in and what comes back.

The gradient of a value in the weight of a linear layer is Σ_u δ_u a_uᵀ over the rows u that went through it, with a_u the row
and δ_u the gradient in what the layer made of it; in the bias it is Σ_u δ_u.  Where every example is one row, all inner products of
the examples' gradients follow without any of them:

    ⟨∇_i, ∇_j⟩ = Σ_layers (δ_i · δ_j) (a_i · a_j + 1)

Where examples share a forward pass, as the nodes of a graph do, a gradient needs only the rows that it reaches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

AGREES = 1e-3
"""How close (relative, in the 2-norm) the gradients put together from rows must come to autograd's own."""


COLUMNS = 16_384
"""Columns of which a copy in float64 is made at a time."""


AT_ONCE = 1 << 20
"""Weights up to which the gradients of all parameters are checked after one backward pass."""


NOT_LINEAR = nn.Embedding, nn.EmbeddingBag
"""Layers whose matrix is looked up, not multiplied with."""


class Unlike(Exception):
    """The network's weights are not used as this module takes them to be."""


@dataclass
class Tap:
    """A layer with what has gone through it; `weight` and `bias` are places in the list of parameters, None if not in it."""

    module: nn.Module
    weight: int
    bias: int | None
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    odd: bool = False  # has it been called with anything but one matrix?

    def listen(self, _: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Take note of one call."""
        if len(args) != 1 or not all(isinstance(t, Tensor) and t.ndim == 2 for t in (args[0], output)):
            self.odd = True
            return
        self.inputs.append(args[0].detach())
        self.outputs.append(output)

    def once(self) -> bool:
        """True if the layer was called once and gave one row per example, in one precision and recorded by autograd."""
        if self.odd or len(self.outputs) != 1:
            return False
        (a,), (b,) = self.inputs, self.outputs
        return len(a) == len(b) and a.dtype == b.dtype and b.requires_grad

    def check(self, slope: Tensor | None, own: Callable[[int], Tensor | None]) -> Tensor:
        """The slope, if autograd's own gradients of the parameters are those of a linear layer; otherwise `Unlike`."""
        if slope is None:
            raise Unlike
        _agree(own(self.weight), slope.T @ self.inputs[0])
        if self.bias is not None:
            _agree(own(self.bias), slope.sum(0))
        return slope


@contextmanager
def tapped(model: nn.Module, params: Sequence[nn.Parameter]) -> Iterator[list[Tap]]:
    """Listen to the layers that own a matrix `weight` among `params`."""
    place = {id(p): i for i, p in enumerate(params)}
    taps = []
    for module in model.modules():
        weight, bias = module._parameters.get("weight"), module._parameters.get("bias")
        if weight is not None and weight.ndim == 2 and id(weight) in place and not isinstance(module, NOT_LINEAR):
            taps.append(Tap(module, place[id(weight)], place.get(id(bias))))
    handles = [tap.module.register_forward_hook(tap.listen) for tap in taps]
    try:
        yield taps
    finally:
        for handle in handles:
            handle.remove()


# -- one row per example ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """Of one layer: the rows that went in and the gradients that came back, one row per example."""

    weight: int
    bias: int | None
    inputs: Tensor
    slopes: Tensor


def row_factors(
    model: nn.Module, params: Sequence[nn.Parameter], values: Callable[[], Tensor]
) -> tuple[list[Factors], Tensor]:
    """The factors of the gradients of `values()`, one value per example, and these values.

    Raises `Unlike` unless every parameter sits in a linear layer that is used once, on one row per example.
    """
    with tapped(model, params) as taps:
        if {i for tap in taps for i in (tap.weight, tap.bias)} - {None} != set(range(len(params))):
            raise Unlike
        found = values()
    if not all(tap.once() and len(tap.outputs[0]) == len(found) for tap in taps):
        raise Unlike
    outputs = [tap.outputs[0] for tap in taps]
    half = torch.rand(len(found), generator=torch.Generator().manual_seed(0)).to(found.device) < 0.5
    if bool(half.any()) and not bool(half.all()):
        reached = torch.autograd.grad(found[half].sum(), outputs, retain_graph=True, allow_unused=True)
        if any(g is None or bool(g[~half].any()) for g in reached):  # rows of other examples
            raise Unlike
    slopes = torch.autograd.grad(found.sum(), outputs, retain_graph=True, allow_unused=True)
    own = _own_gradients(found.sum(), params)
    factors = [
        Factors(tap.weight, tap.bias, tap.inputs[0], tap.check(slope, own))
        for tap, slope in zip(taps, slopes, strict=True)
    ]
    return factors, found.detach()


def _own_gradients(value: Tensor, params: Sequence[nn.Parameter]) -> Callable[[int], Tensor | None]:
    """Autograd's gradient of a value in any of the parameters: of large networks each when it is asked for, to save memory."""
    if sum(p.numel() for p in params) <= AT_ONCE:
        return torch.autograd.grad(value, params, retain_graph=True, allow_unused=True).__getitem__
    return lambda i: torch.autograd.grad(value, params[i], retain_graph=True, allow_unused=True)[0]


def _agree(own: Tensor | None, put_together: Tensor) -> None:
    if own is None or own.shape != put_together.shape:
        raise Unlike
    allowed = AGREES * own.norm() + 1e-12
    if not bool(put_together.sub_(own).norm() <= allowed):
        raise Unlike


def joined(parts: Sequence[Factors]) -> Factors:
    """The factors of one layer for the examples of several batches."""
    inputs, slopes = torch.cat([p.inputs for p in parts]), torch.cat([p.slopes for p in parts])
    return Factors(parts[0].weight, parts[0].bias, inputs, slopes)


def products(factors: Sequence[Factors], scales: Sequence[float] | None = None) -> Tensor:
    """Inner products of all examples' gradients, those of parameter i counted `scales[i]` times; in float64."""
    total: Tensor | None = None
    for layer in factors:
        inside = gram(layer.inputs)
        if scales is not None:
            inside *= scales[layer.weight]
        if layer.bias is not None:
            inside += 1.0 if scales is None else scales[layer.bias]
        inside *= gram(layer.slopes)
        total = inside if total is None else total.add_(inside)
    if total is None:
        raise Unlike
    return total


def gram(rows: Tensor) -> Tensor:
    """Inner products of rows in float64, some columns at a time."""
    total = torch.zeros(len(rows), len(rows), dtype=torch.float64, device=rows.device)
    for part in rows.split(COLUMNS, dim=1):
        exact = part.double()
        total.addmm_(exact, exact.T)
    return total


# -- examples that share a forward pass --------------------------------------------------------------------------------


class SharedGradients:
    """Gradients of single values of one forward pass, where backward passes may stop at the outputs of linear layers.

    `taps` are those of the forward pass.  A layer that is not used as a linear one is differentiated by autograd.
    """

    def __init__(self, params: Sequence[nn.Parameter], taps: Sequence[Tap], values: Tensor) -> None:
        self.params = params
        # Layers of other kinds may have quicker ways of their own: of sparse features, say, in the backward pass.
        self.taps = [tap for tap in taps if type(tap.module) is nn.Linear and tap.once()]
        outputs = [tap.outputs[0] for tap in self.taps]
        trial = torch.randn(len(values), generator=torch.Generator().manual_seed(0)).to(values)
        found = torch.autograd.grad((trial * values).sum(), [*outputs, *params], retain_graph=True, allow_unused=True)
        for tap, slope in zip(list(self.taps), found, strict=False):
            try:
                tap.check(slope, found[len(outputs) :].__getitem__)
            except Unlike:
                self.taps.remove(tap)
        covered = {i for tap in self.taps for i in (tap.weight, tap.bias)}
        self._others = [i for i in range(len(params)) if i not in covered]

    def of(self, value: Tensor) -> list[Tensor | None]:
        """The gradient of one value in each parameter; the forward pass is kept."""
        wanted = [*(tap.outputs[0] for tap in self.taps), *(self.params[i] for i in self._others)]
        found = torch.autograd.grad(value, wanted, retain_graph=True, allow_unused=True)
        parts: list[Tensor | None] = [None] * len(self.params)
        for i, g in zip(self._others, found[len(self.taps) :], strict=True):
            parts[i] = g
        for tap, slope in zip(self.taps, found, strict=False):
            if slope is None:
                continue
            rows = slope.abs().sum(1).nonzero()[:, 0]
            few = slope[rows]
            parts[tap.weight] = few.T @ tap.inputs[0][rows]
            if tap.bias is not None:
                parts[tap.bias] = few.sum(0)
        return parts
