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

from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.read import Problem
from pactrain.problem.scores import evaluate
from pactrain.runtime.events import Callback, Event, silent
from pactrain.runtime.trained_models import TRAINED

Layer = nn.Linear | nn.modules.conv._ConvNd
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

    def teller(self, model: nn.Module, tell: Callback) -> Callback:
        """The callback, given the network with the units taken over into its weights."""
        if not self.taken or tell is silent:
            return tell

        def shown(event: Event) -> None:
            with self.set_aside(model):
                tell(event)

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

    def tell(self, posterior: Posterior, stage1_end: Snapshot | None) -> dict[str, Snapshot]:
        """Bring them into what the posterior says of the weights; the posterior at the end of stage 1, likewise, by its name."""
        posterior.change_units(self.scales(posterior.model))
        if stage1_end is None:
            return {}
        if posterior.units is not None:
            means, log_std = stage1_end.means * posterior.units, stage1_end.log_std + posterior.units.log()
            stage1_end = replace(stage1_end, means=means, log_std=log_std)
        return {"end of stage 1": stage1_end}

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

    def told(self) -> dict[str, Any]:
        """What the configuration of a run says of them."""
        inputs = None if self.inputs is None else self.inputs.tolist()
        return {"units": {"inputs": inputs, "target": self.target}} if self.taken else {}
