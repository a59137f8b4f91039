"""The arguments of `fit` as one record, which all its steps read."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from pactrain.distributions.prior import Prior
from pactrain.problem.loss_weights import ClassWeight
from pactrain.problem.losses import AnyLoss
from pactrain.problem.read import Reading
from pactrain.problem.scores import OURS, Metrics
from pactrain.rules.presets import rules_for
from pactrain.rules.rules import Rules
from pactrain.runtime import distributed
from pactrain.runtime.arguments import check_callables, check_seed, check_share
from pactrain.runtime.devices import choose_device
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.events import Callback, Event, silent
from pactrain.training.budget import Budget, parse_budget
from pactrain.training.choose_bound import rules_with, training_loss
from pactrain.training.gradient_steps import OptimizerFactory
from pactrain.training.precision import Computing

CERTIFICATES = ("standard", "progressive", "recursive")

__all__ = ["Budget", "Callback", "ClassWeight", "Computing", "Metrics", "OptimizerFactory", "Options", "Rules"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of `fit` that are not about the network or its data; a new one of them gets its place here.

    Attributes:
        prior, preset, delta, device, seed, budget, prior_data, optimizer, callbacks, progress, out,
            resume, class_weight, sample_weight, metrics, certificate: As in `fit`.
        bound: As in `fit`; "kl" for a recursive certificate.
        computing: Precision, accumulation and the limit on gradients.
        stop: True once the user has asked for an end.
        stop_requests: Filled by callbacks that want training to end.
        skipped_rules: One sentence per rule that could not be followed; the run adds to them.
        changed: Phases in which a callback changed the network; the run adds to them.
        started: When the call began, by `time.monotonic`.
        until_end: Closed when the run ends; locks and bars are entered here.

    Raises:
        PactrainError: An argument is not understood or out of its range.
    """

    prior: str | Prior = "layer"
    bound: str = "auto"
    preset: str | Rules = "auto"
    delta: float = 0.05
    device: str | torch.device = "auto"
    seed: int = 0
    budget: str | float | Budget | None = None
    prior_data: float = 0.0
    optimizer: OptimizerFactory | None = None
    callbacks: Sequence[Callback] = ()
    progress: bool | None = None
    out: str | Path | None = None
    resume: bool = False
    class_weight: ClassWeight | None = None
    sample_weight: Any = None
    metrics: Metrics = field(default_factory=dict)
    computing: Computing = field(default_factory=Computing)
    certificate: str = "standard"
    stop: Callable[[], bool] = lambda: False
    stop_requests: list[bool] = field(default_factory=list)
    skipped_rules: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    until_end: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        if (self.certificate, self.bound) == ("recursive", "auto"):
            object.__setattr__(self, "bound", "kl")
        object.__setattr__(self, "delta", check_share("delta", self.delta, "0.05 means 95 % confidence"))
        object.__setattr__(self, "seed", check_seed(self.seed))
        if self.prior_data != 0:
            part = check_share("prior_data", self.prior_data, "it is the part of the data that the prior is trained on")
            object.__setattr__(self, "prior_data", part)
        if self.progress not in (None, True, False) or self.resume not in (True, False):
            raise PactrainError(f"progress={self.progress!r:.40} and resume={self.resume!r:.40} must be True or False")
        check_callables("callbacks", self.callbacks, "print")
        if self.optimizer is not None and not callable(self.optimizer):
            raise PactrainError(
                f"optimizer={type(self.optimizer).__name__} must be a function from parameter groups to an optimiser, as in "
                "lambda groups: torch.optim.SGD(groups, lr=0.1): the means are its parameters, and they are not known before"
            )
        if self.out is not None and (not isinstance(self.out, str | Path) or "\0" in str(self.out)):
            raise PactrainError(f"out={self.out!r:.60} must be the path of a folder")
        if self.resume and self.out is None:
            raise PactrainError("resume=True goes on with the run in a folder: say which with out=")
        if self.certificate not in CERTIFICATES:
            raise PactrainError(f"certificate={self.certificate!r} is not known; use one of {', '.join(CERTIFICATES)}")
        if self.certificate != "standard" and self.prior_data:
            raise PactrainError(
                f"prior_data goes with the standard certificate; the {self.certificate} one needs no prior of its own"
            )
        if self.certificate == "recursive" and (self.bound != "kl" or self.rules.stds != "curvature"):
            raise PactrainError('certificate="recursive" goes with bound="kl" and preset="auto"; leave both out')
        if self.certificate == "recursive" and distributed.world() > 1:
            raise PactrainError('certificate="recursive" measures each level in one process; start it without torchrun')
        if not isinstance(self.metrics, Mapping) or not all(map(callable, self.metrics.values())):
            raise PactrainError(
                f'metrics={self.metrics!r:.60} must be functions by name: write metrics={{"f1": f1}} with f1(output, target)'
            )
        taken = sorted(set(self.metrics) & set(OURS))
        if taken:
            raise PactrainError(f"metrics named {', '.join(taken)} are measured anyway; give yours other names")
        if self.computing.accumulate > 1 and self.rules.stds != "curvature":
            raise PactrainError(
                f"accumulate= goes with preset='auto', not with {self.rules.name!r}, whose bound needs whole batches"
            )
        _ = self.rules, self.limit, self.where, self.prior_spec  # mistakes are found before anything is touched

    @cached_property
    def rules(self) -> Rules:
        """The rules of the preset, as the bound changes them."""
        return rules_with(rules_for(self.preset), self.bound)

    @cached_property
    def limit(self) -> Budget:
        """The budget, understood."""
        return parse_budget(self.budget)

    def left(self) -> float:
        """Seconds of the budget that are left, by the first process's clock; infinity without a limit on time."""
        if self.limit.seconds == math.inf:
            return math.inf
        began = self.started if self.limit.started is None else self.limit.started
        return distributed.from_first(self.limit.seconds - (time.monotonic() - began))[0]

    @cached_property
    def where(self) -> torch.device:
        """The device, chosen."""
        return choose_device(self.device)

    @cached_property
    def prior_spec(self) -> Prior:
        """The prior, with groups by name understood."""
        return Prior.of(self.prior)

    @cached_property
    def notify(self) -> Callback:
        """All callbacks as one."""
        if not self.callbacks:
            return silent

        def notify(event: Event) -> None:
            for callback in self.callbacks:
                callback(event)
            if event.stopped and event.phase == "train":
                self.stop_requests.append(True)

        return notify

    def stopped_by(self, pressed: Callable[[], bool]) -> "Options":
        """Options whose `stop` is true after Ctrl-C, and once a callback has asked for an end."""
        return replace(self, stop=lambda: pressed() or bool(self.stop_requests))

    def reading(self, loss: str | AnyLoss | None) -> Reading:
        """How the data is read, with a loss of the user's choice."""
        return Reading(
            loss=loss,
            batch_size=self.rules.batch,
            device=self.where,
            trained_on=partial(training_loss, self.bound),
            prior_data=self.prior_data,
            certificate=self.certificate,
            seed=self.seed,
            class_weight=self.class_weight,
            sample_weight=self.sample_weight,
            metrics=self.metrics,
        )
