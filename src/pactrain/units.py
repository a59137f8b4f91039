"""Columns and targets of a table in units of about their own size, which the trained network takes over into its weights.

A network is made for inputs and answers around one.  Where a column has values around 1,000, an untrained network sees little else, and
the rules, which ask the untrained network, see no more than it does; where answers are around 150, it has to grow a hundredfold before it
learns anything.  So such data is trained on in units of its own, and afterwards the first layer's weights are divided by those of
the inputs and the last layer's multiplied by that of the targets:

    W (x / u) = (W / u) x        t (W a + b) = (t W) a + t b

The network then takes the data as it came.  Units are powers of four, so that not a bit of what it computes changes.  Posterior and prior
remain Gaussians with independent weights; the prior's std is that of its group times a unit of each weight (`Posterior.units`).

The data chooses the units.  That nothing is scaled has a probability of `UNSCALED`, fixed beforehand; of the rest, half goes to one unit for all
inputs and half to one for each, and each unit is one of 2 `LARGEST` + 1.  The certificate is charged for the choice, and its
numbers need no other assumption than before.  Rows that the prior may see anyway (`prior_data`) choose free of charge.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pactrain.batches import Batches, TensorBatches
from pactrain.centre import only_noise
from pactrain.losses import AnyLoss, Loss
from pactrain.modes import evaluating
from pactrain.posterior import Posterior
from pactrain.preparation import TRAINED
from pactrain.problem import Problem

FAR = 30.0
"""How far above or below one the size of a column, or of the targets, has to be before units are taken.  Measured where it is not zero, so that
rare ones in a column of zeros have the size of one."""

BASE, LARGEST = 4.0, 9
"""Units are BASE**k, k from -LARGEST to LARGEST."""

UNSCALED = 0.99
"""The probability, fixed before any data is seen, that no units are taken; its price is a hundredth of a nat."""

HOMOGENEOUS = ("mse", "l1", "quantile")
"""Losses that in other units of the targets are the same but for a factor."""

TRIED = 4
"""Random inputs with which it is seen what a network does with its inputs."""

Layer = nn.Linear | nn.modules.conv._ConvNd
AnyBatches = TypeVar("AnyBatches", bound=Batches)


@dataclass(frozen=True)
class Ends:
    """The layer that the inputs go into and nothing else does, and the one that the answers come from; None where there is no such layer."""

    first: Layer | None = None
    last: nn.Linear | None = None


@dataclass(frozen=True)
class Units:
    """Of the inputs, one an input of the first layer, and of the targets; and the price in nats of having chosen them."""

    ends: Ends = Ends()
    inputs: Tensor | None = None
    target: float = 1.0
    nats: float = 0.0

    @property
    def taken(self) -> bool:
        """Is anything in other units than it came in?"""
        return self.inputs is not None or self.target != 1

    def applied(self, problem: Problem) -> Problem:
        """The same problem in these units."""
        if not self.taken:
            return problem
        batches, test = self.rows(problem.batches), None if problem.test is None else self.rows(problem.test)
        loss, trained_on = self._loss(problem.loss), self._loss(problem.trained_on)
        if problem.trained_on is problem.loss:
            trained_on = loss
        return Problem(batches, test, next(iter(batches.ordered())), loss, trained_on)

    def _loss(self, loss: AnyLoss) -> AnyLoss:
        return replace(loss, unit=loss.unit * self.target) if isinstance(loss, Loss) else loss

    def rows(self, batches: AnyBatches) -> AnyBatches:
        """Rows of the data in these units."""
        if not self.taken or not isinstance(batches, TensorBatches):
            return batches
        scaled, (x, y) = copy.copy(batches), batches.tensors
        if self.inputs is not None and self.ends.first is not None:
            x = x / self.inputs.reshape(_beside(self.ends.first, x))
        scaled.tensors = x, y if self.target == 1 else y / self.target
        return scaled

    @contextmanager
    def taken_over(self, model: nn.Module) -> Iterator[None]:
        """Bring the units into the weights at the end of the block, however it ends, if the network has been trained in it."""
        try:
            yield
        finally:
            if model in TRAINED:
                with torch.no_grad():
                    for name, scale in self._scales(model).items():
                        model.get_parameter(name).mul_(scale)

    def tell(self, posterior: Posterior) -> None:
        """Bring them into what the posterior says of the weights."""
        posterior.change_units(self._scales(posterior.model))

    def _scales(self, model: nn.Module) -> dict[str, Tensor]:
        """What the weights are multiplied by, of each parameter for which that is not one."""
        scales: dict[str, Tensor] = {}
        for name, p in model.named_parameters():
            scale = torch.ones_like(p)
            if self.inputs is not None and self.ends.first is not None and p is self.ends.first.weight:
                scale = scale / self.inputs.reshape(1, -1, *[1] * (p.ndim - 2))
            if self.ends.last is not None and any(p is own for own in self.ends.last.parameters()):
                scale = scale * self.target
            if bool((scale != 1).any()):
                scales[name] = scale
        return scales

    def told(self) -> dict[str, Any]:
        """What the configuration of a run says of them."""
        inputs = None if self.inputs is None else self.inputs.tolist()
        return {"units": {"inputs": inputs, "target": self.target}} if self.taken else {}

    def remarks(self) -> list[str]:
        """What the user is told."""
        if not self.taken:
            return []
        parts = []
        if self.inputs is not None:
            low, high = float(self.inputs.min()), float(self.inputs.max())
            parts.append(f"inputs in units of {f'{low:.3g} to ' if low < high else ''}{high:,.4g}")
        if self.target != 1:
            parts.append(
                f"targets in units of {self.target:,.4g} (and losses of the history and the certificate with them)"
            )
        return [
            f"trained with {' and '.join(parts)}, as the data is far from the size of one; the weights have taken the units over, so "
            "that the network takes and gives numbers as they come"
        ]


def find_units(model: nn.Module, problem: Problem, seed: int, *, free: bool = False) -> Units:
    """Units for data that is far from the size of one; none where it is not, where the network was trained before, or where it does
    not take them.

    free: the prior may see these rows, so that nothing is to be paid.
    """
    tables = [b for b in (problem.batches, problem.test) if b is not None]
    if not all(isinstance(b, TensorBatches) and len(b.tensors) == 2 and b.transform is None for b in tables):
        return Units()
    x, y = problem.batches.tensors  # type: ignore[attr-defined]
    if not (isinstance(problem.loss, Loss) and x.is_floating_point() and x.ndim > 1 and only_noise(model)):
        return Units()
    ends = find_ends(model, x, y, problem.loss, seed)
    if ends.first is None and ends.last is None:
        return Units()
    sizes = None if ends.first is None else _sizes(x, ends.first)
    size = None if ends.last is None else _size(y.reshape(1, -1))
    if not any(_far(s) for s in (sizes, size) if s is not None):
        return Units(nats=0.0 if free else -math.log(UNSCALED))
    inputs, chosen = None, 0 if size is None else 1
    if sizes is not None:
        together = _rounded(_size(x.reshape(1, -1)))
        alike = not _far(sizes / together)
        inputs = (together.expand_as(sizes) if alike else _rounded(sizes)).to(x)
        chosen += 1 if alike else len(sizes)
    nats = 0.0 if free else chosen * math.log(2 * LARGEST + 1) - math.log((1 - UNSCALED) / 2)
    return Units(ends, inputs, 1.0 if size is None else float(_rounded(size)), nats)


def _far(sizes: Tensor) -> bool:
    return bool(((sizes > FAR) | (sizes < 1 / FAR)).any())


def _rounded(sizes: Tensor) -> Tensor:
    """The nearest units."""
    exponents = (sizes.log() / math.log(BASE)).round().clamp(-LARGEST, LARGEST)
    return torch.pow(torch.full_like(exponents, BASE), exponents)


def _sizes(x: Tensor, first: Layer) -> Tensor:
    """The size of each input of the layer."""
    return _size(x.flatten(1).T if isinstance(first, nn.Linear) else x.transpose(0, 1).flatten(1))


def _size(rows: Tensor) -> Tensor:
    """Root mean square of each row, over what is not zero in it; 1 where all is zero."""
    exact = rows.double()
    there = (exact != 0).sum(1)
    return torch.where(there > 0, (exact.square().sum(1) / there.clamp(min=1)).sqrt(), 1.0)


def _beside(layer: Layer, x: Tensor) -> tuple[int, ...]:
    """The shape in which one number an input of the layer stands beside the rows."""
    return (1, *x.shape[1:]) if isinstance(layer, nn.Linear) else (1, -1, *[1] * (x.ndim - 2))


# -- what a network does with its inputs ---------------------------------------------------------------------------------


@torch.no_grad()
def find_ends(model: nn.Module, x: Tensor, y: Tensor, loss: Loss, seed: int) -> Ends:
    """The first and the last layer, where units can be brought into them.  The data gives no more than shapes and types."""
    model = getattr(model, "_orig_mod", model)  # nothing is to be compiled for a few rows
    source = torch.Generator().manual_seed(seed)
    noise = torch.randn(TRIED, *x.shape[1:], generator=source).to(x)
    layers = [m for m in model.modules() if isinstance(m, Layer)]
    taken: list[Layer] = []
    given: list[tuple[Layer, Tensor]] = []

    def listen(layer: Any, args: tuple[Any, ...], out: Tensor) -> None:
        seen = args[0] if args and isinstance(args[0], Tensor) else noise[:0]
        same = seen.numel() == noise.numel() and torch.equal(seen.reshape(len(noise), -1), noise.flatten(1))
        if same and ((isinstance(layer, nn.Linear) and seen.ndim == 2) or seen.shape == noise.shape):
            taken.append(layer)
        given.append((layer, out))

    handles = [layer.register_forward_hook(listen) for layer in layers]
    with evaluating(model):
        try:
            out = model(noise)
        except Exception:  # whatever it is that the network does not take, training will tell
            return Ends()
        finally:
            for handle in handles:
                handle.remove()
        if not isinstance(out, Tensor):
            return Ends()
        first = taken[0] if len(taken) == 1 and _may_change(taken[0]) else None
        if first is not None and not _bears_units(model, first, noise, out, source):
            first = None
        last = given[-1][0] if given and given[-1][1].numel() == out.numel() else None
        answers = loss.task == "regression" and y.is_floating_point() and loss.name.startswith(HOMOGENEOUS)
        if not (
            answers and isinstance(last, nn.Linear) and _may_change(last) and _bears_target(model, last, noise, out)
        ):
            return Ends(first, None)
    return Ends(first, last)


def _may_change(layer: Layer) -> bool:
    """Has it one column of weights for each of its inputs, all of which are trained?"""
    columns = isinstance(layer, nn.Linear) or (layer.groups == 1 and not layer.transposed)
    return columns and all(p.requires_grad for p in layer.parameters())


def _bears_units(model: nn.Module, first: Layer, noise: Tensor, out: Tensor, source: torch.Generator) -> bool:
    """Is it the same to divide the inputs and to divide the layer's weights?"""
    units = torch.pow(BASE, torch.randint(-1, 2, first.weight.shape[1:2], generator=source).float()).to(noise)
    with _multiplied(first.weight, units.reshape(1, -1, *[1] * (first.weight.ndim - 2))):
        return _alike(lambda: model(noise / units.reshape(_beside(first, noise))), out)


def _bears_target(model: nn.Module, last: nn.Linear, noise: Tensor, out: Tensor) -> bool:
    """Is it the same to multiply the answers and to multiply the layer's weights?"""
    with _multiplied(last.weight, torch.full((), BASE)), _multiplied(last.bias, torch.full((), BASE)):
        return _alike(lambda: model(noise), BASE * out)


def _alike(found: Callable[[], Any], expected: Tensor) -> bool:
    with suppress(Exception):
        return bool(torch.allclose(found(), expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max())))
    return False


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
