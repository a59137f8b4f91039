"""Which units a table is trained in: of its columns and its targets, by their sizes; and what the choice costs.

Units are brought into the weights of the layer that the inputs go into, and of the one that the answers come from.  These are found by sending
random inputs through the network.  That it gives the same answers either way is checked on all rows, with random weights, as its
own may hide what else it does (zeros, say).
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.prior import Prior
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating, restored_buffers, restored_modes
from pactrain.problem.read import Problem
from pactrain.problem.scores import class_shares, entropy, evaluate
from pactrain.rules.constants import FAR
from pactrain.rules.rules import Rules
from pactrain.rules.units import Layer, Units
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.trained_models import TRAINED

BASE, LARGEST = 4.0, 9
"""Units are BASE**k, k from -LARGEST to LARGEST."""

UNSCALED = 0.99
"""The probability, fixed before any data is seen, that no units are taken; its price is a hundredth of a nat."""

TRIED, TRIED_WEIGHT = 4, 0.3
"""Random inputs that are sent through the network, and the standard deviation of its random weights."""

NUMBERS = 1 << 20
"""Numbers that are brought to float64 at a time."""


@dataclass(frozen=True)
class Scaled:
    """A problem and the units that it is trained in.

    Attributes:
        given: The problem as it came.
        units: What columns and targets are divided by.
        problem: The problem in these units.
    """

    given: Problem
    units: Units
    problem: Problem


@contextmanager
def in_units(model: nn.Module, given: Problem, *, rules: Rules, prior: Prior, seed: int) -> Iterator[Scaled]:
    """Choose units by all rows, or by those of the prior where it has some of its own; inside the block the network takes them.

    A prior whose std the user has given is meant for the data as it came.
    """
    units = Units()
    if rules.units and prior.learn and prior.std is None:
        first = given.prior_rows
        seen = given if first is None else replace(given, batches=first)
        units = find_units(model, seen, seed, free=first is not None)
    problem = units.applied(given)
    with units.in_use(model):
        yield Scaled(given, units, problem)


@torch.no_grad()
def find_units(model: nn.Module, problem: Problem, seed: int, *, free: bool = False) -> Units:
    """Units for data that is far from the size of one; none where it is not, or where the network does not take them.

    free: the prior may see these rows, so that nothing is to be paid.
    """
    batches, loss = problem.batches.table, problem.loss
    if batches is None or len(batches.tensors) != 2 or batches.transform is not None:
        return Units()
    x, y = batches.tensors
    if not (loss.of_outputs and x.is_floating_point() and x.ndim > 1 and _is_pair(problem.test)):
        return Units()
    model = getattr(model, "_orig_mod", model)  # nothing is to be compiled for a few rows
    found = None
    try:
        wanted = _wanted(model, x, y, loss, torch.Generator().manual_seed(seed))
        tried = (wanted, replace(wanted, target=1.0, degree=0), replace(wanted, inputs=None))
        found = next((u for u in tried if u.taken and _same_answers(u, model, batches, seed)), None)
    except Refused as error:  # an assertion about the size of inputs, say
        what = "Inputs or targets far from the size of one were not scaled, as network or loss could not be tried in other units"
        gave_up(what, error, instead="they are trained on as they came")
    if found is None:
        return Units(nats=0.0 if free else -math.log(UNSCALED))
    ready = model in TRAINED or _has_learned(model, batches, loss)
    return replace(found, ready=ready, nats=0.0 if free else found.nats)


def _is_pair(batches: Batches | None) -> bool:
    batch = (0, 0) if batches is None else next(iter(batches.ordered()), (0, 0))
    return isinstance(batch, (tuple, list)) and len(batch) == 2


# -- what the data asks for -----------------------------------------------------------------------------------------------


def _wanted(model: nn.Module, x: Tensor, y: Tensor, loss: Loss, source: torch.Generator) -> Units:
    """Units that the data asks for, with the layers that may take them, and their price."""
    numbers = loss.task == "regression" and y.is_floating_point() and math.isinf(loss.high)
    size = float(_sizes(y.reshape(-1, 1))[0]) if numbers else 1.0
    target = float(_rounded(torch.tensor(size, device="cpu"))) if size > FAR or size < 1 / FAR else 1.0
    degree = 0 if target == 1 else _degree(loss, target, y)
    inputs = _of_inputs(_sizes(x), wanted=degree > 0)
    if inputs is None and not degree:
        return Units()
    first, last = _ends(model, torch.randn(TRIED, *x.shape[1:], generator=source).to(x))
    if isinstance(first, nn.Linear) and x.ndim > 2:  # after Flatten: a column for each number
        inputs = _of_inputs(_sizes(x.flatten(1)), wanted=degree > 0)
    several = inputs is not None and len(inputs.unique()) > 1
    count = numbers + (len(inputs) if several and inputs is not None else 1)
    price = count * math.log(2 * LARGEST + 1) - math.log((1 - UNSCALED) / 4)
    inputs = None if inputs is None or first is None else inputs.to(x)
    return Units(first, last, degree if last else 0, inputs, target if degree and last else 1.0, price)


def _of_inputs(sizes: Tensor, *, wanted: bool) -> Tensor | None:
    """Units of columns of these sizes (NaN where hardly anything is): one for all, unless a column would be far below one in it.

    wanted: the targets need a unit anyway.
    """
    there = sizes[~sizes.isnan()]
    if not len(there):
        return None
    large = float(there.max()) > FAR
    if not (large or wanted or float(there.max()) < 1 / FAR):
        return None
    together = _rounded(there.square().mean().sqrt())
    alive = there[there > 1 / FAR]  # what is small by itself may well be dead
    if large and bool((alive < together / FAR).any()):
        return _rounded(sizes.nan_to_num(1.0))
    return together.expand_as(sizes) if float(together) != 1 else None


def _rounded(sizes: Tensor) -> Tensor:
    """The nearest units."""
    exponents = (sizes.double().log() / math.log(BASE)).round().clamp(-LARGEST, LARGEST)
    return torch.pow(torch.full_like(exponents, BASE), exponents)


def _sizes(x: Tensor) -> Tensor:
    """Root mean square of each column, or channel, over what is not zero in it; NaN where that is in hardly any row and not large."""
    squares = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
    there = torch.zeros_like(squares)
    over = [d for d in range(x.ndim) if d != 1]
    for part in x.split(max(1, NUMBERS // max(1, x[:1].numel()))):
        squares += part.double().square().sum(over)
        there += (part != 0).sum(over)
    rare = there * FAR <= x.numel() / max(1, x.shape[1])
    sizes = (squares / there).sqrt()
    return sizes.masked_fill(rare & ~(sizes > FAR), math.nan)  # a few huge numbers spoil training as many do


def _degree(loss: Loss, unit: float, y: Tensor) -> int:
    """k, 1 or 2, if the loss of guesses and targets in units is their loss divided by the unit to the power k; otherwise 0."""
    guesses = torch.randn(y.shape, generator=torch.Generator().manual_seed(0)).to(y)
    asked = refusing(loss.per_example)
    ours, theirs = asked(guesses, y / unit), asked(unit * guesses, y)
    return next((k for k in (1, 2) if _alike(unit**k * ours, theirs)), 0)


def _has_learned(model: nn.Module, batches: TensorBatches, loss: Loss) -> bool:
    """True if the network, as it is, does better on the raw data than an answer that does not look at the inputs."""
    y = batches.tensors[1]
    if loss.task == "classification":
        shares = class_shares(batches, loss)
        constant = -math.inf if shares is None else entropy(shares)
    else:
        answers = y.mean(0), y.median(0).values
        constant = min(float(loss.per_example(answer.expand_as(y), y).double().mean()) for answer in answers)
    return bool(evaluate(model, batches.ordered(), loss)["loss"] < constant)


# -- what the network takes -----------------------------------------------------------------------------------------------


def _answers(model: nn.Module, x: Tensor) -> Tensor:
    """The network's output, if it takes these inputs and gives rows of floating-point numbers; otherwise `Refused`."""
    out = refusing(model)(x)
    if not (isinstance(out, Tensor) and out.is_floating_point() and out.numel() and out.ndim):
        raise Refused(
            TypeError("the network's output is not a tensor of floating-point numbers with one row per example")
        )
    return out


def _ends(model: nn.Module, noise: Tensor) -> tuple[Layer | None, nn.Linear | None]:
    """The layer that was given the inputs, and the one that made the output; None where there is no such layer, or its weights are not trained."""
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
        with evaluating(model), restored_buffers(model):
            out = _answers(model, noise)
    finally:
        for handle in handles:
            handle.remove()
    first = taken[0] if len(taken) == 1 and _may_change(taken[0]) else None
    last = made[-1][0] if made and made[-1][1].numel() == out.numel() and _may_change(made[-1][0]) else None
    return first, last if isinstance(last, nn.Linear) else None


def _may_change(layer: Layer) -> bool:
    """True if the layer has one column of weights for each of its inputs, and these are trained."""
    columns = isinstance(layer, nn.Linear) or (layer.groups == 1 and not layer.transposed)
    return columns and all(p.requires_grad for p in layer.parameters())


def _same_answers(units: Units, model: nn.Module, batches: TensorBatches, seed: int) -> bool:
    """True if the network gives the same answers for all rows, whether inputs and answers are in units or the weights take the units
    over.  Checked with random weights, in train mode and in eval mode."""
    scales = units.scales(model)
    with ExitStack() as kept:
        kept.enter_context(restored_modes(model))
        kept.enter_context(restored_buffers(model))
        kept.enter_context(_restored_weights(model))
        source = torch.Generator().manual_seed(seed)
        for p in model.parameters():
            if p.is_floating_point():
                p.copy_(TRIED_WEIGHT * torch.randn(p.shape, generator=source))
        for training in (False, True):
            model.train(training)
            for x, y in batches.ordered():
                in_units = units.target * _repeated(model, units.pair((x, y))[0], seed)
                with _restored_weights(model):
                    for name, scale in scales.items():
                        model.get_parameter(name).mul_(scale)
                    if not _alike(in_units, _repeated(model, x, seed)):
                        return False
    return True


def _repeated(model: nn.Module, x: Tensor, seed: int) -> Tensor:
    """The network's answers with the same randomness each time."""
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        torch.manual_seed(seed)
        return _answers(model, x)


def _alike(found: Tensor, expected: Tensor) -> bool:
    close = 1e-5 * float(expected.abs().max())
    return found.shape == expected.shape and bool(torch.allclose(found, expected, rtol=1e-4, atol=close))


@contextmanager
def _restored_weights(model: nn.Module) -> Iterator[None]:
    """All weights are put back at the end of the block."""
    kept = [(p, p.detach().clone()) for p in model.parameters() if p.is_floating_point()]
    try:
        yield
    finally:
        for p, weight in kept:
            p.copy_(weight)
