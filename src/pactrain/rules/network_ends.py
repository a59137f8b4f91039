"""The two ends of a network: the layer that its inputs go into and nothing else does, and the one that its answers come from.

Found by sending random inputs through the network with random weights (of its own, which may be zero, too much would be hidden), which
are put back.  The data gives no more than shapes and types.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating, restored_buffers, restored_modes
from pactrain.runtime.gave_up import Refused, gave_up, refusing

TRIED = 4
"""Random inputs that are sent through the network."""

FACTOR = 4.0
"""What is multiplied by to see whether it comes out the same."""

TRIED_WEIGHT = 0.3
"""Deviation of the random weights."""

Layer = nn.Linear | nn.modules.conv._ConvNd


@dataclass(frozen=True)
class Ends:
    """The first and the last layer, None where there is no such layer; the power of the targets' unit that the loss is in; and why
    network or loss could not be asked, if they could not."""

    first: Layer | None = None
    last: nn.Linear | None = None
    degree: int = 0
    refused: Refused | None = None


@torch.no_grad()
def find_ends(model: nn.Module, x: Tensor, y: Tensor, loss: Loss, seed: int) -> Ends:
    """The ends into whose weights units of the inputs and of the targets can be brought."""
    model = getattr(model, "_orig_mod", model)  # nothing is to be compiled for a few rows
    source = torch.Generator().manual_seed(seed)
    noise = torch.randn(TRIED, *x.shape[1:], generator=source).to(x)
    try:
        with evaluating(model), restored_buffers(model), _random_weights(model, source):
            out, taken, given = _listen(model, noise)
            first = taken[0] if len(taken) == 1 and _may_change(taken[0]) else None
            if first is not None:
                units = torch.pow(FACTOR, torch.randint(-1, 2, first.weight.shape[1:2], generator=source)).to(noise)
                first = first if _alike(*_both_ways(model, Ends(first), units, 1.0, noise)) else None
            last = given if isinstance(given, nn.Linear) and _may_change(given) else None
            degree, refused = (0, None) if last is None else _degree(loss, out, y, source)
            last = last if last is not None and degree and _multiplies(model, last, noise, out) else None
    except Refused as error:
        return Ends(refused=error)
    return Ends(first, last, degree if last is not None else 0, refused)


def _answers(model: nn.Module, x: Tensor) -> Tensor:
    """The network's output, if it takes these inputs and gives rows of floating-point numbers; otherwise `Refused`."""
    out = refusing(model)(x)
    if not (isinstance(out, Tensor) and out.is_floating_point() and out.numel() and out.ndim):
        raise Refused(
            TypeError("the network's output is not a tensor of floating-point numbers with one row per example")
        )
    return out


def _listen(model: nn.Module, noise: Tensor) -> tuple[Tensor, list[Layer], Layer | None]:
    """The output, the layers that were given the inputs themselves, and the one that made the output."""
    taken: list[Layer] = []
    made: list[tuple[Layer, Tensor]] = []

    def listen(layer: Any, args: tuple[Any, ...], out: Any) -> None:
        seen = args[0] if args else None  # none of a call with keywords only
        if not isinstance(seen, Tensor) or not isinstance(out, Tensor):
            return
        same = seen.numel() == noise.numel() and torch.equal(seen.reshape(-1), noise.reshape(-1))
        if same and (seen.ndim == 2 if isinstance(layer, nn.Linear) else seen.shape == noise.shape):
            taken.append(layer)
        made.append((layer, out))

    handles = [m.register_forward_hook(listen) for m in model.modules() if isinstance(m, Layer)]
    try:
        out = _answers(model, noise)
    finally:
        for handle in handles:
            handle.remove()
    return out, taken, made[-1][0] if made and made[-1][1].numel() == out.numel() else None


@torch.no_grad()
def same_with_units(
    model: nn.Module, ends: Ends, units: Tensor | None, target: float, batches: TensorBatches, seed: int
) -> bool:
    """True if the network gives the same answers for all of these rows, whether inputs and answers are in units or the weights take
    the units over.  Checked with random weights, in train mode and in eval mode."""
    model = getattr(model, "_orig_mod", model)
    buffers = [(b, b.clone()) for b in model.buffers()]
    try:
        with restored_modes(model), _random_weights(model, torch.Generator().manual_seed(seed)):
            return all(
                _alike(*_both_ways(model.train(training), ends, units, target, batch[0], seed))
                for training in (False, True)
                for batch in batches.ordered()
            )
    except Refused as error:  # an assertion about the size of inputs, say
        return _not_scaled(error)
    finally:
        for buffer, kept in buffers:
            buffer.copy_(kept)


def _both_ways(
    model: nn.Module, ends: Ends, units: Tensor | None, target: float, x: Tensor, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """The outputs with inputs and answers in units, and with both as they are and the weights changed; with the same randomness."""
    first, last = ends.first, ends.last if target != 1 else None
    if first is None or units is None:
        in_units, over = x, None
    else:
        in_units, over = x / units.reshape(beside(first, x)), (1 / units).reshape(1, -1, *[1] * (first.weight.ndim - 2))

    def answers(inputs: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
            torch.manual_seed(seed)
            return _answers(model, inputs)

    with ExitStack() as changes:
        scaled = target * answers(in_units)
        if first is not None and over is not None:
            changes.enter_context(_multiplied(first.weight, over))
        for weight in () if last is None else (last.weight, last.bias):
            changes.enter_context(_multiplied(weight, torch.full((), target, device="cpu")))
        return scaled, answers(x)


def _multiplies(model: nn.Module, last: nn.Linear, noise: Tensor, out: Tensor) -> bool:
    """True if multiplying the layer's weights multiplies the answers by the same factor."""
    factor = torch.full((), FACTOR, device="cpu")
    with _multiplied(last.weight, factor), _multiplied(last.bias, factor):
        return _alike(_answers(model, noise), FACTOR * out)


def _degree(loss: Loss, out: Tensor, y: Tensor, source: torch.Generator) -> tuple[int, Refused | None]:
    """k if the loss of numbers c times as large is c^k times as large, k being 1 or 2; otherwise 0, and why the loss was not to be had."""
    if loss.task != "regression" or not y.is_floating_point() or loss.high < float("inf"):
        return 0, None
    wide = torch.randn(len(out), *y.shape[1:], generator=source).to(y)
    asked = refusing(loss.per_example)
    try:
        one, more = asked(out, wide), asked(FACTOR * out, FACTOR * wide)
    except Refused as error:
        return 0, error
    return next((k for k in (1, 2) if _alike(more, FACTOR**k * one)), 0), None


@torch.no_grad()
def same_loss(loss: Loss, unit: float, degree: int, y: Tensor) -> bool:
    """True if the loss of these targets in units is that of the targets themselves but for a power of the unit."""
    guesses = torch.randn(y.shape, generator=torch.Generator().manual_seed(0)).to(y)
    asked = refusing(loss.per_example)
    try:
        ours, theirs = asked(guesses, y / unit), asked(unit * guesses, y)
    except Refused as error:
        return _not_scaled(error)
    return _alike(unit**degree * ours, theirs)


def _not_scaled(error: Refused) -> bool:
    what = "Inputs or targets far from the size of one were not all scaled, as network or loss do not take them in other units"
    gave_up(what, error, instead="they are trained on as they came")
    return False


def _alike(found: Tensor, expected: Tensor) -> bool:
    close = 1e-5 * float(expected.abs().max())
    return found.shape == expected.shape and bool(torch.allclose(found, expected, rtol=1e-4, atol=close))


def _may_change(layer: Layer) -> bool:
    """True if the layer has one column of weights for each of its inputs, and these are trained."""
    columns = isinstance(layer, nn.Linear) or (layer.groups == 1 and not layer.transposed)
    return columns and all(p.requires_grad for p in layer.parameters())


def beside(layer: Layer, x: Tensor) -> tuple[int, ...]:
    """The shape in which one number an input of the layer stands beside the rows."""
    return (1, *x.shape[1:]) if isinstance(layer, nn.Linear) else (1, -1, *[1] * (x.ndim - 2))


@contextmanager
def _random_weights(model: nn.Module, source: torch.Generator) -> Iterator[None]:
    """Random numbers instead of all weights for the length of a block."""
    kept = [(p, p.detach().clone()) for p in model.parameters() if p.is_floating_point()]
    try:
        for p, _ in kept:
            p.copy_(TRIED_WEIGHT * torch.randn(p.shape, generator=source))
        yield
    finally:
        for p, weight in kept:
            p.copy_(weight)


@contextmanager
def _multiplied(weight: Tensor | None, by: Tensor) -> Iterator[None]:
    """The weight multiplied for the length of a block."""
    if weight is None:
        yield
        return
    kept = weight.clone()
    weight.mul_(by.to(weight))
    try:
        yield
    finally:
        weight.copy_(kept)
