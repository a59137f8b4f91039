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
from pactrain.rules.constants import DEAD, FAR, FAR_SMALLER, RARE
from pactrain.rules.network_ends import Ends, find_ends, same_loss, same_with_units
from pactrain.rules.rules import Rules
from pactrain.rules.units import Units
from pactrain.runtime.gave_up import gave_up
from pactrain.runtime.trained_models import TRAINED

BASE, LARGEST = 4.0, 9
"""Units are BASE**k, k from -LARGEST to LARGEST."""

UNSCALED = 0.99
"""The probability, fixed before any data is seen, that no units are taken; its price is a hundredth of a nat."""

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
    ends = find_ends(model, x, y, loss, seed)
    if ends.refused is not None and (_is_far(x) or (y.is_floating_point() and _is_far(y.reshape(-1, 1)))):
        gave_up(
            "Inputs or targets far from the size of one were not all scaled, as this could not be tried with random numbers",
            ends.refused,
            instead="they are trained on as they came",
        )
    if ends.first is None and ends.last is None:
        return Units()
    wanted = _units(ends, x, y)
    for found in (wanted, replace(wanted, target=1.0)):
        if found.taken and _borne(found, model, batches, loss, seed):
            found = replace(found, ready=model in TRAINED or _better_as_it_is(found, model, batches, loss))
            break
    else:
        found = Units(nats=-math.log(UNSCALED))
    return replace(found, nats=0.0) if free else found


def _is_far(x: Tensor) -> bool:
    """True if the largest size of a column is far from one."""
    sizes = _sizes(x.flatten(1))
    there = sizes[~sizes.isnan()]
    return bool(len(there)) and not 1 / FAR <= float(there.max()) <= FAR


def _is_pair(batches: Batches | None) -> bool:
    batch = (0, 0) if batches is None else next(iter(batches.ordered()), (0, 0))
    return isinstance(batch, (tuple, list)) and len(batch) == 2


def _borne(units: Units, model: nn.Module, batches: TensorBatches, loss: Loss, seed: int) -> bool:
    """True if network and loss can be trained in these units on these rows."""
    ends = units.ends
    if units.target != 1 and not same_loss(loss, units.target, ends.degree, batches.tensors[1]):
        return False
    return same_with_units(model, ends, units.inputs, units.target, batches, seed)


def _better_as_it_is(units: Units, model: nn.Module, batches: TensorBatches, loss: Loss) -> bool:
    """True if the network, as it is, has a far smaller loss on the raw data than on the data in units, and than any constant answer."""
    ours = evaluate(model, units.rows(batches).ordered(), loss)["loss"] * units.target**units.ends.degree
    raw = evaluate(model, batches.ordered(), loss)["loss"]
    return bool(raw < FAR_SMALLER * ours and raw < _of_a_constant(batches, loss))


def _of_a_constant(batches: TensorBatches, loss: Loss) -> float:
    """The loss of an answer that does not look at the inputs; infinite where we do not know a good one."""
    y = batches.tensors[1]
    if loss.task == "classification":
        shares = class_shares(batches, loss)
        return math.inf if shares is None else entropy(shares)
    answers = y.mean(0), y.median(0).values
    return min(float(loss.per_example(answer.expand_as(y), y).double().mean()) for answer in answers)


def _units(ends: Ends, x: Tensor, y: Tensor) -> Units:
    """Units that the data asks for, and their price."""
    size = 1.0 if ends.last is None else float(_sizes(y.reshape(-1, 1))[0])
    target = float(_rounded(torch.tensor(size, device="cpu"))) if size > FAR or size < 1 / FAR else 1.0
    inputs, chosen = None, 1 if ends.last is not None else 0
    if ends.first is not None:
        sizes = _sizes(x.flatten(1) if isinstance(ends.first, nn.Linear) else x)
        inputs, count = _of_inputs(sizes, target != 1)
        chosen += count
    price = chosen * math.log(2 * LARGEST + 1) - math.log((1 - UNSCALED) / 4)
    return Units(ends, None if inputs is None else inputs.to(x), target, price)


def _of_inputs(sizes: Tensor, wanted: bool) -> tuple[Tensor | None, int]:
    """Units of columns of these sizes (NaN where hardly anything is), and how many were chosen.  `wanted`: the targets need one anyway."""
    there = sizes[~sizes.isnan()]
    if not len(there):
        return None, 1
    large = float(there.max()) > FAR
    if not (large or wanted or float(there.max()) < 1 / FAR):
        return None, 1
    together = _rounded(there.square().mean().sqrt())
    ratios = there / together
    alive = (ratios > DEAD) | (there > 1 / FAR)  # a flag beside a price of a million is not dead
    if large and bool((alive & (ratios < 1 / FAR)).any()):
        return _rounded(sizes.nan_to_num(1.0)), len(sizes)
    return (together.expand_as(sizes) if float(together) != 1 else None), 1


def _rounded(sizes: Tensor) -> Tensor:
    """The nearest units."""
    exponents = (sizes.double().log() / math.log(BASE)).round().clamp(-LARGEST, LARGEST)
    return torch.pow(torch.full_like(exponents, BASE), exponents)


def _sizes(x: Tensor) -> Tensor:
    """Root mean square of each column, or channel, over what is not zero in it; NaN where that is next to nothing."""
    squares = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
    there = torch.zeros_like(squares)
    over = [d for d in range(x.ndim) if d != 1]
    for part in x.split(max(1, NUMBERS // max(1, x[:1].numel()))):
        squares += part.double().square().sum(over)
        there += (part != 0).sum(over)
    rare = there <= RARE * x.numel() / max(1, x.shape[1])
    sizes = (squares / there).sqrt()
    return sizes.masked_fill(rare & ~(sizes > FAR), math.nan)  # a few huge numbers spoil training as many do
