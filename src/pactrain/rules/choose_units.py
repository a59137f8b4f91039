"""Which units a table is trained in: of its columns and its targets, by their sizes; and what the choice costs."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from pactrain.distributions.prior import Prior
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import Loss
from pactrain.problem.read import Problem
from pactrain.problem.scores import class_shares, entropy, evaluate
from pactrain.problem.units import Units, alike, ends_of, same_answers
from pactrain.rules.constants import FAR
from pactrain.rules.rules import Rules
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.trained_models import TRAINED

BASE, LARGEST = 4.0, 9
"""Units are BASE**k, k from -LARGEST to LARGEST."""

UNSCALED = 0.99
"""The probability, fixed before any data is seen, that no units are taken; its price is a hundredth of a nat."""

TRIED = 4
"""Random inputs that are sent through the network."""

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
    found = Units(nats=-math.log(UNSCALED))
    try:
        wanted = _wanted(model, x, y, loss, torch.Generator().manual_seed(seed))
        tried = (wanted, replace(wanted, target=1.0, degree=0), replace(wanted, inputs=None))
        found = next((u for u in tried if u.taken and same_answers(u, model, batches, seed)), found)
    except Refused as error:  # an assertion about the size of inputs, say
        what = "Inputs or targets far from the size of one were not scaled, as network or loss could not be tried in other units"
        gave_up(what, error, instead="they are trained on as they came")
    ready = found.taken and (model in TRAINED or _has_learned(model, batches, loss))
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
    first, last = ends_of(model, torch.randn(TRIED, *x.shape[1:], generator=source).to(x))
    if isinstance(first, nn.Linear) and x.ndim > 2:  # after Flatten: a column for each number
        inputs = _of_inputs(_sizes(x.flatten(1)), wanted=degree > 0)
    count = numbers + (1 if inputs is None or len(inputs.unique()) == 1 else len(inputs))
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
    guarded = refusing(loss.per_example)
    ours, theirs = guarded(guesses, y / unit), guarded(unit * guesses, y)
    return next((k for k in (1, 2) if alike(unit**k * ours, theirs)), 0)


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
