"""Columns and targets of a table in units of about their own size, which the trained network takes over into its weights.

A network is made for inputs and answers around one.  Where a column has values around 1,000, an untrained network sees little else, and
the rules, which ask the untrained network, see no more than it does; where answers are around 150, it has to grow a hundredfold before it
learns anything.  So such data is trained on in units of its own, and afterwards the first layer's weights are divided by those of
the inputs and the last layer's multiplied by that of the targets:

    W (x / u) = (W / u) x        t (W a + b) = (t W) a + t b

The network then takes the data as it came.  Units are powers of four, so that not a bit of what it computes changes.  Posterior and prior
remain Gaussians with independent weights; the prior's std is that of its group times a unit of each weight (`Posterior.units`).
A network that has learned from raw data already takes the units into its weights first, so that it goes on from what it was.

The data chooses the units.  That nothing is scaled has a probability of `UNSCALED`, fixed beforehand; the rest is shared out equally among one unit for all
inputs or one for each, with weights that take them over at first or not, and each unit is one of 2 `LARGEST` + 1.  The certificate is charged for the choice, and its
numbers need no other assumption than before.  Rows that the prior may see anyway (`prior_data`) choose free of charge.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating, hooked, restored_buffers, restored_modes, restored_values
from pactrain.problem.read import Problem
from pactrain.problem.scores import evaluate
from pactrain.runtime.events import Callback, Event, silent
from pactrain.runtime.gave_up import Refused, refusing
from pactrain.runtime.trained_models import TRAINED

Layer = nn.Linear | nn.modules.conv._ConvNd
TRIED_WEIGHT = 0.3
"""Standard deviation of the random weights with which a network is tried."""

AnyBatches = TypeVar("AnyBatches", bound=Batches)


@dataclass(frozen=True)
class Units:
    """Units, and the layers whose weights take them over.

    Attributes:
        first: The layer that the inputs go into.
        last: The layer that the answers come from.
        degree: Power of the targets' unit that the loss is in.
        inputs: One unit per input of the first layer.
        target: Unit of the targets.
        nats: Price of having chosen them.
        ready: True if the weights take raw data, so that they take the units over first.
    """

    first: Layer | None = None
    last: nn.Linear | None = None
    degree: int = 0
    inputs: Tensor | None = None
    target: float = 1.0
    nats: float = 0.0
    ready: bool = False

    @property
    def taken(self) -> bool:
        """True if inputs or targets are in other units than those of the data."""
        return self.inputs is not None or self.target != 1

    # -- the data in units ---------------------------------------------------------------------------------------------

    def applied(self, problem: Problem) -> Problem:
        """The problem in these units."""
        if not self.taken:
            return problem
        test = None if problem.test is None else self.rows(problem.test)
        loss, trained_on = self._loss(problem.loss), self._loss(problem.trained_on)
        if problem.trained_on is problem.loss:
            trained_on = loss
        first = None if problem.prior_rows is None else self.rows(problem.prior_rows)
        batches, sample = self.rows(problem.batches), self.pair(problem.sample)
        blocks = tuple(map(self.rows, problem.blocks))
        parts = {"batches": batches, "test": test, "sample": sample, "prior_rows": first, "blocks": blocks}
        return replace(problem, loss=loss, trained_on=trained_on, **parts)

    def _loss(self, loss: Loss) -> Loss:
        return replace(loss, unit=loss.unit * self.target)

    def rows(self, batches: AnyBatches) -> AnyBatches:
        """Rows of the data in these units."""
        return batches.mapped(self.pair) if self.taken else batches

    def pair(self, batch: Any) -> Any:
        """Inputs and targets of a batch in these units."""
        x, y = batch
        if self.inputs is not None:
            beside = (1, *x.shape[1:]) if isinstance(self.first, nn.Linear) else (1, -1, *[1] * (x.ndim - 2))
            x = x / self.inputs.reshape(beside).to(x)
        return x, y if self.target == 1 else y / self.target

    # -- the weights ---------------------------------------------------------------------------------------------------

    @contextmanager
    def in_use(self, model: nn.Module) -> Iterator[None]:
        """Inside the block the network takes data in units; afterwards, however the block ends, as it came.  A block that fails before anything
        was trained leaves the weights what they were."""
        if not self.taken:
            yield
            return
        if self.ready:
            self._multiply(model, back=True)
        ended = False
        try:
            yield
            ended = True
        finally:
            if ended or self.ready or model in TRAINED:
                self._multiply(model)

    def notifier(self, model: nn.Module, notify: Callback) -> Callback:
        """The callback, given the network with the units taken over into its weights."""
        if not self.taken or notify is silent:
            return notify

        def shown(event: Event) -> None:
            with self.set_aside(model):
                notify(event)

        return shown

    @contextmanager
    def set_aside(self, model: nn.Module) -> Iterator[None]:
        """Inside this block, within that of `in_use`, the network takes data as it came."""
        self._multiply(model)
        try:
            yield
        finally:
            self._multiply(model, back=True)

    def doubts(self, model: nn.Module, problem: Problem, given: Problem) -> list[str]:
        """A reason for doubt if the trained network does, within the block of `in_use`, anything else with rows in units than with rows as they came."""
        if not self.taken:
            return []
        for ours, theirs in ((problem.batches, given.batches), (problem.test, given.test)):
            if ours is None or theirs is None:
                continue
            found = evaluate(model, ours.ordered(), problem.loss)
            with self.set_aside(model):
                raw = evaluate(model, theirs.ordered(), given.loss)
            key = next(k for k in ("accuracy", "rmse", "loss") if k in found)
            if not math.isclose(found[key], raw[key], rel_tol=1e-3, abs_tol=1e-9):
                return [
                    f"the network treats inputs of some sizes specially: in the units that it was trained in its {key} is "
                    f"{found[key]:.4g}, on the raw data {raw[key]:.4g}; train it without (Rules(units=False), and scale the inputs)"
                ]
        return []

    @torch.no_grad()
    def _multiply(self, model: nn.Module, *, back: bool = False) -> None:
        for name, scale in self.scales(model).items():
            model.get_parameter(name).mul_(1 / scale if back else scale)

    def scales(self, model: nn.Module) -> dict[str, Tensor]:
        """What the weights are multiplied by, of each parameter for which that is not one."""
        scales: dict[str, Tensor] = {}
        for name, p in model.named_parameters():
            scale = torch.ones_like(p)
            if self.inputs is not None and self.first is not None and p is self.first.weight:
                scale = scale / self.inputs.reshape(1, -1, *[1] * (p.ndim - 2)).to(scale)
            if self.last is not None and any(p is own for own in (self.last.weight, self.last.bias)):
                scale = scale * self.target
            if bool((scale != 1).any()):
                scales[name] = scale
        return scales

    def as_config(self) -> dict[str, Any]:
        """What the configuration of a run says of them."""
        inputs = None if self.inputs is None else self.inputs.tolist()
        return {"units": {"inputs": inputs, "target": self.target}} if self.taken else {}


# -- what the network takes -----------------------------------------------------------------------------------------------


def _answers(model: nn.Module, x: Tensor) -> Tensor:
    """The network's output, if it takes these inputs and gives rows of floating-point numbers; otherwise `Refused`."""
    out = refusing(model)(x)
    if not (isinstance(out, Tensor) and out.is_floating_point() and out.numel() and out.ndim):
        raise Refused(
            TypeError("the network's output is not a tensor of floating-point numbers with one row per example")
        )
    return out


def ends_of(model: nn.Module, noise: Tensor) -> tuple[Layer | None, nn.Linear | None]:
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

    listening = hooked((m, listen) for m in model.modules() if isinstance(m, Layer))
    with listening, evaluating(model), restored_buffers(model):
        out = _answers(model, noise)
    first = taken[0] if len(taken) == 1 and _may_change(taken[0]) else None
    last = made[-1][0] if made and made[-1][1].numel() == out.numel() and _may_change(made[-1][0]) else None
    return first, last if isinstance(last, nn.Linear) else None


def _may_change(layer: Layer) -> bool:
    """True if the layer has one column of weights for each of its inputs, and these are trained."""
    columns = isinstance(layer, nn.Linear) or (layer.groups == 1 and not layer.transposed)
    return columns and all(p.requires_grad for p in layer.parameters())


def same_answers(units: Units, model: nn.Module, batches: TensorBatches, seed: int) -> bool:
    """True if the network gives the same answers for all rows, whether inputs and answers are in units or the weights take the units
    over.  Checked with random weights, in train mode and in eval mode."""
    scales, weights = units.scales(model), [p for p in model.parameters() if p.is_floating_point()]
    with restored_modes(model), restored_buffers(model), restored_values(weights):
        source = torch.Generator().manual_seed(seed)
        for p in weights:
            p.copy_(TRIED_WEIGHT * torch.randn(p.shape, generator=source))
        for training in (False, True):
            model.train(training)
            for x, y in batches.ordered():
                in_units = units.target * _repeated(model, units.pair((x, y))[0], seed)
                with restored_values(weights):
                    for name, scale in scales.items():
                        model.get_parameter(name).mul_(scale)
                    if not alike(in_units, _repeated(model, x, seed)):
                        return False
    return True


def _repeated(model: nn.Module, x: Tensor, seed: int) -> Tensor:
    """The network's answers with the same randomness each time."""
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        torch.manual_seed(seed)
        return _answers(model, x)


def alike(found: Tensor, expected: Tensor) -> bool:
    close = 1e-5 * float(expected.abs().max())
    return found.shape == expected.shape and bool(torch.allclose(found, expected, rtol=1e-4, atol=close))
