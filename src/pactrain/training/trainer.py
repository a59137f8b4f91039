"""The two-stage training loop.

Stage 1 minimises the bound over means, stds and prior.  Stage 2 goes on with the means alone, at the noise that stage 1
learned, if the network has not been fitted by then.  Every random choice is drawn from (seed, epoch) or (seed, step),
so a loop continued from a checkpoint is the same loop.
"""

import math
import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.read import Problem
from pactrain.runtime import distributed
from pactrain.runtime.errors import PactrainError, TrainingError
from pactrain.runtime.seeds import derive, seed_global
from pactrain.training.closed_form_steps import closed_form, curvature_step, first_weight, follow_bound
from pactrain.training.curvature import CurvatureStds
from pactrain.training.gamma_search import Walker
from pactrain.training.gradient_steps import GradientSteps, adam, param_groups
from pactrain.training.history import Measurement, Record, epochs_between
from pactrain.training.not_finite import not_finite
from pactrain.training.plan import Plan
from pactrain.training.schedule import Pace
from pactrain.training.state import Progress, pack, unpack
from pactrain.training.update_formulas import Moves

PRIOR_STEPS = 50
"""Steps between closed-form updates of the prior's stds, beside one at each end of an epoch."""

STAGE2_GAIN = 0.01
"""Relative fall of the best loss that keeps stage 2 going."""

HURRY = 120.0
"""Seconds of a budget below which nothing is compiled."""


class Stopped(Exception):
    """The user has asked for an end, and all processes of the job know it."""


class Trainer:
    """One run of the two stages.

    Args:
        posterior: The distribution that is trained, with its prior in place.
        problem: The data and the losses, in the units that are trained in.
        plan: How it is trained.
    """

    def __init__(self, posterior: Posterior, problem: Problem, plan: Plan) -> None:
        rules, self.posterior, self.loss = plan.rules, posterior, problem.trained_on
        self.rules, self.seed, self.held_gamma = rules, plan.seed, plan.gamma.value
        self.progress = Progress()
        self.stage1_end: Snapshot | None = None
        self._take(problem, plan)
        own = rules.stds == "curvature" and plan.optimizer is None  # means and stds in one pass
        self.curvature = self._closed_form(moves=rules.means if own else "none") if rules.stds == "curvature" else None
        self.optimizer: torch.optim.Optimizer | None = None
        if not own:
            groups = param_groups(posterior, stds=self.curvature is None)
            self.optimizer = plan.optimizer(groups) if plan.optimizer else adam(groups, (plan.lr, rules.std_lr))
            if not isinstance(self.optimizer, torch.optim.Optimizer):
                raise PactrainError(f"optimizer= returned {self.optimizer!r:.60}, and must return a torch optimiser")
        self.base_rates = [float(group["lr"]) for group in self.optimizer.param_groups] if self.optimizer else []
        self.lr = self.rate = plan.lr
        self.part = 1.0

    def _take(self, problem: Problem, plan: Plan) -> None:
        """Take over what changes when there are more examples: the batches, the bound, the pace, the search over γ."""
        self.plan, self.batches, self.bound, self.budget = plan, problem.batches, plan.bound, plan.budget
        self.steps_per_epoch = plan.untrained.steps
        self.walker: Walker | None = plan.gamma.search(
            self.rules.stage1_epochs(self.steps_per_epoch), self.rules.gamma_max
        )
        walk = self.walker.walk if self.walker is not None else None
        self.pace = Pace(self.rules, self.budget, self.steps_per_epoch, walk)
        self._by_gradient = GradientSteps(
            self.posterior, self.loss, plan.bound, self.rules, plan.prior_range, plan.seed, plan.computing
        )
        # The user's own loss is measured, where a clipped one is trained on.
        self._measured = Measurement(self.posterior, plan.bound, problem, seed=plan.seed)

    def continue_with(self, problem: Problem, plan: Plan, *, rate: float) -> None:
        """Prepare for training on more examples, from the state reached with fewer, at the same γ and with this share of the rate."""
        self._take(problem, plan)
        self.part = rate
        p = self.progress
        self.stage1_end = None
        self.progress = Progress(
            epoch=p.epoch, step=p.step, seconds_before=p.seconds_before + p.seconds, scores=p.scores, blocks=p.blocks
        )
        if self.curvature is not None:
            self.curvature.kl_weight = first_weight(self.bound, self.held_gamma)
            if self.posterior.units is None:
                self.curvature.rest()
            else:  # the prior has changed
                self.curvature.restart()

    def _closed_form(self, moves: Moves) -> CurvatureStds:
        steps = self.steps_per_epoch * self.pace.stage1_limit if self.budget.seconds > HURRY else 0
        lowest = self.plan.prior_range[0]
        return closed_form(
            self.posterior, self.bound, self.rules, held_gamma=self.held_gamma, lowest=lowest, moves=moves, steps=steps
        )

    # -- the loop --------------------------------------------------------------------------------------------------

    def epochs(self) -> Iterable[Record]:
        """Train, yielding one record per epoch, until the rules or the budget end it."""
        try:
            if self.curvature is not None:
                self.curvature.flat.attach()
            yield from self._epochs()
        finally:
            if self.curvature is not None:
                self.curvature.flat.release()

    def _epochs(self) -> Iterable[Record]:
        p = self.progress
        while not p.done:
            started = time.monotonic()
            risk = self._epoch()
            means = [self.curvature.flat.means] if self.curvature is not None else self.posterior.means()
            if not all(math.isfinite(x) for m in means if m.numel() for x in torch.aminmax(m.detach())):
                raise self._not_finite(math.nan)
            p.epoch += 1
            if p.stage == 1:
                p.stage1_epochs += 1
            else:
                p.stage2_epochs += 1
            started = self._count_time(started)
            if self._time_to_measure():
                p.scores = self._measured.measure(p.epoch)
            where = {"epoch": p.epoch, "stage": p.stage, "step": p.step, "held_gamma": self.held_gamma}
            record: Record = {**where, **self._measured(risk, p.scores)}
            self._count_time(started)
            if p.scores["scores_epoch"] < p.epoch and self._time_to_measure():  # time has run out since
                p.scores = self._measured.measure(p.epoch)
                record |= self._measured(risk, p.scores)
            record["seconds"] = round(p.seconds_before + p.seconds, 3)
            self._next_stage(record)
            yield record

    def _count_time(self, since: float) -> float:
        """Add the time passed since then, by the first process's clock; returns the present time."""
        now = time.monotonic()
        self.progress.seconds = distributed.from_first(self.progress.seconds + now - since)[0]
        return now

    def _time_to_measure(self) -> bool:
        """True at regular intervals, and whenever a stage or a segment may end with this epoch."""
        p, pace = self.progress, self.pace
        if p.stage == 1:
            ends = pace.stage1_over(p) or (self.walker is not None and self.walker.walk.part(p.stage1_epochs) == 1)
        else:
            ends = pace.stage2_over(p) or p.epochs_since_best >= self.rules.stage2_patience - 1
        return ends or "kl" not in p.scores or p.epoch - p.scores["scores_epoch"] >= epochs_between(pace.most_epochs(p))

    def _epoch(self) -> float:
        try:
            return self._steps()
        finally:
            if self.curvature is not None:
                self.curvature.rest()

    def _steps(self) -> float:
        p, total, count = self.progress, 0.0, 0
        mine = (distributed.rank(),) if distributed.rank() else ()
        seed_global(derive(self.seed, "epoch", p.epoch, *mine))  # dropout and the user's own randomness
        started = time.monotonic()
        for index, batch in enumerate(self.batches.epoch(derive(self.seed, "order", p.epoch))):
            now, stop = distributed.from_first(p.seconds + time.monotonic() - started, self.plan.stop())
            self._set_rate(index, now)
            total += self.step(batch)
            count += 1
            if stop:
                raise Stopped
            if self.budget.over(now):
                break
        if self.curvature is not None and p.stage == 1:
            if self.steps_per_epoch >= PRIOR_STEPS or p.stage1_epochs + 1 >= self.pace.stage1_limit:
                self.curvature.update_prior()
            follow_bound(
                self.curvature,
                self.bound,
                self.held_gamma,
                total / max(1, count),
                pays=self.plan.pays,
                seed=derive(self.seed, "errors", p.epoch),
                errors_now=self._measured.training_errors,
            )
        return total / max(1, count)

    def step(self, batch: Any) -> float:
        """One step; returns the batch's loss at the draw."""
        p, curvature = self.progress, self.curvature
        if curvature is not None:
            how = self.plan.computing
            value = curvature_step(
                curvature, self.optimizer, self.loss, batch, p, rate=self.rate, seed=self.seed, how=how
            )
        else:
            assert self.optimizer is not None
            value = self._by_gradient.step(self.optimizer, batch, p)
        p.step += 1
        if curvature is not None and p.stage == 1 and p.step % PRIOR_STEPS == 0:
            curvature.update_prior()
        return value

    def _set_rate(self, index: int, now: float) -> None:
        if not self.rules.decay:
            return
        factor = self.part * self.pace.rate_factor(self.progress, index, now)
        self.rate = self.lr * factor
        if self.optimizer is not None:
            for group, rate in zip(self.optimizer.param_groups, self.base_rates, strict=True):
                group["lr"] = rate * factor

    def _not_finite(self, value: float) -> TrainingError:
        if self.curvature is not None:
            self.curvature.rest()
        return not_finite(self.posterior, self.progress, value)

    # -- stages ----------------------------------------------------------------------------------------------------

    def _next_stage(self, record: Record) -> None:
        p, rules = self.progress, self.rules
        if p.stage == 1:
            over = self.pace.stage1_over(p)
            if self.walker is not None:
                over, record = self._walk(self.walker, over, record)
            if not over:
                return
            p.stage1 = record
            fitted = record["risk"] <= rules.enter_stage2 * self.plan.untrained.loss
            p.done = fitted or self.pace.stage2_limit == 0 or self.budget.over(p.seconds)
            if not p.done:
                p.stage, self.stage1_end = 2, self.posterior.snapshot()
            return
        if record["risk"] < (1 - STAGE2_GAIN) * p.best_loss:
            p.best_loss, p.epochs_since_best = record["risk"], 0
        else:
            p.epochs_since_best += 1
        p.done = self.pace.stage2_over(p)

    def _walk(self, walker: Walker, over: bool, record: Record) -> tuple[bool, Record]:
        """Go on with the search over γ if a segment of it is over; returns whether stage 1 has ended, and the record it ends with."""
        p, curvature, started = self.progress, self.curvature, time.monotonic()
        assert curvature is not None
        over, record = walker.after_epoch(curvature, p.stage1_epochs, over=over, record=record)
        self._count_time(started)
        self.held_gamma = walker.walk.gamma
        curvature.kl_weight = first_weight(self.bound, self.held_gamma)
        curvature.rest()  # the stds follow from that weight
        return over, record

    def measured_now(self, risk: float) -> Record:
        """The record of this epoch if the network were measured now."""
        return self._measured(risk, self._measured.measure(self.progress.epoch))

    def expected_epochs(self) -> int:
        """The epoch at which training is likely to end, as far as is known now."""
        return self.pace.expected_epochs(self.progress)

    # -- state -----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything needed to go on, as named tensors and plain values."""
        return pack(self)

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go back to a state."""
        unpack(self, tensors, values)
