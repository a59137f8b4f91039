"""The two-stage training loop.

Stage 1 minimises the bound over means, stds and prior.  Stage 2 goes on with the means alone, at the noise that stage 1
learned, if the network has not been fitted by then.  Every random choice is drawn from (seed, epoch) or (seed, step),
so a loop continued from a checkpoint is the same loop.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from pactrain import ranks
from pactrain.auto import Rules
from pactrain.batches import Batches
from pactrain.bounds.base import Bound
from pactrain.bounds.unbounded import Unbounded
from pactrain.budget import Budget
from pactrain.checkpoint import pack_optimizer, unpack_optimizer
from pactrain.curvature import CurvatureStds, Moves
from pactrain.errors import TrainingError
from pactrain.evaluate import evaluate, measure
from pactrain.gamma_walk import FEWEST_EPOCHS, GammaWalk, longest
from pactrain.kept import Kept
from pactrain.kl_weight import first_weight, followed_weight
from pactrain.left_out import LeftOut
from pactrain.losses import AnyLoss, per_example
from pactrain.modes import batch_norms, batch_statistics
from pactrain.moment import Moment
from pactrain.posterior import Posterior, Snapshot
from pactrain.seeds import derive, generator, seed_global

OptimizerFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]
Record = dict[str, Any]

HISTORY_EXAMPLES = 2048
"""Rows on which the history is measured each epoch, so that its cost does not grow with the data."""

PRIOR_STEPS = 50
"""Steps between closed-form updates of the prior's stds, beside one at each end of an epoch."""

PRIOR_GROWTH = 1.0
"""How far above its start a prior's log-std may grow under a bound for losses in [0, 1], where no moment ψ limits it: prior
and posterior could otherwise widen together at no charge until the noise drowns the network."""

HURRY = 120.0
"""Seconds of a budget below which nothing is compiled."""


@dataclass
class Progress:
    """Where a run is; all that is needed to go on, beside the tensors."""

    stage: int = 1
    epoch: int = 0
    step: int = 0
    stage1_epochs: int = 0
    stage2_epochs: int = 0
    seconds: float = 0.0
    best_loss: float = math.inf
    epochs_since_best: int = 0
    stage1: Record = field(default_factory=dict)
    done: bool = False


class Stopped(Exception):
    """The user has asked for an end, and all processes of the job know it."""


class Trainer:
    """One run of the two stages."""

    def __init__(
        self,
        posterior: Posterior,
        batches: Batches,
        loss: AnyLoss,
        bound: Unbounded | Bound,
        rules: Rules,
        *,
        moment: Moment,
        held_gamma: float,
        lr: float,
        seed: int,
        steps_per_epoch: int,
        start_loss: float,
        budget: Budget,
        test: Batches | None,
        stop: Callable[[], bool] = lambda: False,
        optimizer: OptimizerFactory | None = None,
        scored: AnyLoss | None = None,
        left_out: LeftOut | None = None,
    ) -> None:
        self.posterior, self.batches, self.loss, self.bound, self.rules = posterior, batches, loss, bound, rules
        self.scored = scored or loss  # the user's own loss, where a clipped one is trained on
        self.seed, self.steps_per_epoch, self.start_loss, self.budget = seed, steps_per_epoch, start_loss, budget
        self.stop, self.held_gamma, self.left_out = stop, held_gamma, left_out
        self.progress = Progress()
        self.stage1_end: Snapshot | None = None
        rule_epochs = rules.stage1_epochs(steps_per_epoch)
        self.stage1_limit, self.stage2_limit = budget.epochs_of_stages(rule_epochs, rules)
        self.walk: GammaWalk | None = None
        self._best: Kept | None = None
        if left_out is not None and rule_epochs >= FEWEST_EPOCHS:
            self.walk = GammaWalk(held_gamma, rule_epochs)
            self.stage1_limit = min(budget.epochs or sys.maxsize, longest(rule_epochs))
        lowest, highest = float(moment.log_stds[0]), float(moment.log_stds[-1])
        self.range = (max(lowest, math.log(rules.min_prior_std)) if rules.min_prior_std else lowest, highest)
        own = rules.stds == "curvature" and optimizer is None  # means and stds in one pass
        self.curvature = self._curvature(rules.means if own else "none") if rules.stds == "curvature" else None
        self.optimizer: torch.optim.Optimizer | None = None
        if not own:
            self.optimizer = (
                optimizer(self._param_groups()) if optimizer else adam(self._param_groups(), (lr, rules.std_lr))
            )
        self.base_rates = [float(group["lr"]) for group in self.optimizer.param_groups] if self.optimizer else []
        self.lr = self.rate = lr
        self._train_view = batches.subset(HISTORY_EXAMPLES, derive(seed, "history"))
        self._test_view = test.subset(HISTORY_EXAMPLES, derive(seed, "history")) if test is not None else None

    def _curvature(self, moves: Moves) -> CurvatureStds:
        """Closed-form stds; a prior wider than it starts pays off only where no moment ψ grows with it."""
        start = float(self.posterior.prior_log_std.detach().max())
        bounded = isinstance(self.bound, Bound)
        return CurvatureStds(
            self.posterior,
            kl_weight=first_weight(self.bound, self.held_gamma),
            memory=self.rules.curvature_memory,
            log_std_range=(self.range[0], max(start, self.range[0]) + (PRIOR_GROWTH if bounded else 0.0)),
            first=self.rules.first_curvature,
            moves=moves,
            steps=self.steps_per_epoch * self.stage1_limit if self.budget.seconds > HURRY else 0,
        )

    def _follow_bound(self, risk: float) -> None:
        if self.curvature is not None and isinstance(self.bound, Bound):
            self.curvature.rest()
            kl = float(self.posterior.kl_by_group().sum())
            self.curvature.kl_weight = followed_weight(self.bound, self.held_gamma, risk, kl)

    def _param_groups(self) -> list[dict[str, Any]]:
        """The means; and the stds, where they are trained by gradients."""
        groups: list[dict[str, Any]] = [{"params": self.posterior.means()}]
        if self.curvature is None:
            stds = [self.posterior.log_std, self.posterior.prior_log_std]
            groups.append({"params": [p for p in stds if p.requires_grad]})
        return groups

    # -- the loop --------------------------------------------------------------------------------------------------

    def epochs(self) -> Iterable[Record]:
        """Train, yielding one record an epoch, until the rules or the budget end it."""
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
            record = self._record(risk)
            p.seconds = ranks.from_first(p.seconds + time.monotonic() - started)[0]
            record["seconds"] = round(p.seconds, 3)
            self._next_stage(record)
            yield record

    def _epoch(self) -> float:
        try:
            return self._steps()
        finally:
            if self.curvature is not None:
                self.curvature.rest()

    def _steps(self) -> float:
        p, total, count = self.progress, 0.0, 0
        mine = (ranks.rank(),) if ranks.rank() else ()
        seed_global(derive(self.seed, "epoch", p.epoch, *mine))  # dropout and the user's own randomness
        started = time.monotonic()
        for index, batch in enumerate(self.batches.epoch(derive(self.seed, "order", p.epoch))):
            now, stop = ranks.from_first(p.seconds + time.monotonic() - started, self.stop())
            self._set_rate(index, now)
            total += self.step(batch)
            count += 1
            if stop:
                raise Stopped
            if self.budget.over(now):
                break
        if self.curvature is not None and p.stage == 1:
            if self.steps_per_epoch >= PRIOR_STEPS or p.stage1_epochs + 1 >= self.stage1_limit:
                self.curvature.update_prior()
            self._follow_bound(total / max(1, count))
        return total / max(1, count)

    def step(self, batch: Any) -> float:
        """One step; returns the batch's loss at the draw."""
        p = self.progress
        curvature = self.curvature
        value = self._gradient_step(batch) if curvature is None else self._curvature_step(curvature, batch)
        p.step += 1
        if curvature is not None and p.stage == 1 and p.step % PRIOR_STEPS == 0:
            curvature.update_prior()
        return value

    def _curvature_step(self, curvature: CurvatureStds, batch: Any) -> float:
        p = self.progress
        curvature.draw(derive(self.seed, "noise", p.step))
        risk, value = ranks.mean_loss(per_example(self.loss, self.posterior.model, ranks.share(batch)))
        if not math.isfinite(value):
            raise self._not_finite(value)
        risk.backward()
        curvature.learn(self.rate, p.step, stds=p.stage == 1)
        if self.optimizer is not None:
            curvature.flat.step(self.optimizer)
        return value

    def _gradient_step(self, batch: Any) -> float:
        posterior, p, optimizer = self.posterior, self.progress, self.optimizer
        assert optimizer is not None
        noise = generator(posterior.log_std.device, self.seed, "noise", p.step)
        optimizer.zero_grad(set_to_none=True)
        posterior.log_std.grad = posterior.prior_log_std.grad = None
        with posterior.sampled(noise) as model:
            risk, value = ranks.mean_loss(per_example(self.loss, model, ranks.share(batch)))
            if not math.isfinite(value):
                raise self._not_finite(value)
            if p.stage == 1:
                self.bound(risk, posterior).total.backward()
            else:
                risk.backward()
        ranks.average_gradients([*posterior.means(), posterior.log_std, posterior.prior_log_std])
        if p.stage == 2:
            posterior.log_std.grad = None
        else:
            self._warm_up()
        optimizer.step()
        if p.stage == 1 and posterior.prior_log_std.requires_grad:
            with torch.no_grad():
                posterior.prior_log_std.clamp_(*self.range)
        return value

    def _warm_up(self) -> None:
        """For the first epochs each group's log-stds move as one number."""
        grad = self.posterior.log_std.grad
        large = self.posterior.num_weights >= self.rules.warmup_weights
        if grad is not None and large and self.progress.epoch < self.rules.warmup_epochs:
            for at in self.posterior.group_slices:
                grad[at] = grad[at].mean()

    def _set_rate(self, index: int, now: float) -> None:
        if not self.rules.decay:
            return
        p = self.progress
        limit, done = (self.stage1_limit, p.stage1_epochs) if p.stage == 1 else (self.stage2_limit, p.stage2_epochs)
        epoch = done + index / self.steps_per_epoch
        share = epoch / max(1, limit)
        if self.walk is not None and p.stage == 1:  # each segment for itself, as far as the budget goes
            share = max(self.walk.part(epoch), share if self.budget.epochs is not None else 0.0)
        share = min(1.0, max(share, self.budget.share_of_stage(p.stage, now, self.rules)))
        factor = 0.5 * (1 + math.cos(math.pi * share))
        self.rate = self.lr * factor
        if self.optimizer is not None:
            for group, rate in zip(self.optimizer.param_groups, self.base_rates, strict=True):
                group["lr"] = rate * factor

    # -- stages ----------------------------------------------------------------------------------------------------

    def _next_stage(self, record: Record) -> None:
        p, rules = self.progress, self.rules
        if p.stage == 1:
            over = p.stage1_epochs >= self.stage1_limit or self.budget.stage1_over(p.seconds, rules)
            if self.walk is not None:
                over, record = self._walk(self.walk, over, record)
            if not over:
                return
            p.stage1 = record
            fitted = record["risk"] <= rules.enter_stage2 * self.start_loss
            p.done = fitted or self.stage2_limit == 0 or self.budget.over(p.seconds)
            if not p.done:
                p.stage, self.stage1_end = 2, self.posterior.snapshot()
            return
        if record["risk"] < (1 - rules.stage2_gain) * p.best_loss:
            p.best_loss, p.epochs_since_best = record["risk"], 0
        else:
            p.epochs_since_best += 1
        p.done = (
            p.stage2_epochs >= self.stage2_limit
            or p.epochs_since_best >= rules.stage2_patience
            or self.budget.over(p.seconds)
        )

    def _walk(self, walk: GammaWalk, over: bool, record: Record) -> tuple[bool, Record]:
        """Choose the γ of the next segment if this one is over.  Is it the end, and with which record?"""
        p, curvature, left_out = self.progress, self.curvature, self.left_out
        assert curvature is not None
        assert left_out is not None
        place, started = walk.here, time.monotonic()
        if not over and walk.part(p.stage1_epochs) == 1:
            found = left_out.mean_loss(walk.gamma, curvature.drawn) if ranks.rank() == 0 else 0.0
            over = not walk.go_on(ranks.from_first(found)[0], p.stage1_epochs)
            if walk.best == place:
                walk.record, self._best = record, Kept({"prior": self.posterior.prior_log_std, **curvature.best()})
        if over and walk.losses and walk.best != place:  # also in the middle of a segment, with no time for more
            walk.here, record = walk.best, walk.record
            self._go_back(curvature)
        p.seconds = ranks.from_first(p.seconds + time.monotonic() - started)[0]
        self.held_gamma = walk.gamma
        curvature.kl_weight = first_weight(self.bound, self.held_gamma)
        return over, record

    def _go_back(self, curvature: CurvatureStds) -> None:
        """To the best state of the walk."""
        assert self._best is not None
        self._best.into({"prior": self.posterior.prior_log_std, **curvature.best()})
        curvature.follow()

    def expected_epochs(self) -> int:
        """The epoch at which the present stage is likely to end, by its limits on epochs and on time."""
        p = self.progress
        done, limit = (p.stage1_epochs, self.stage1_limit) if p.stage == 1 else (p.stage2_epochs, self.stage2_limit)
        share = self.budget.share_of_stage(p.stage, p.seconds, self.rules)
        in_time = math.ceil(done / share) if done and share > 0 else limit
        return p.epoch - done + max(done, min(limit, in_time))

    # -- what is recorded ------------------------------------------------------------------------------------------

    def _record(self, risk: float) -> Record:
        posterior, p = self.posterior, self.progress
        kl = float(posterior.kl_by_group().sum())
        total, gamma, kl_term, complexity = self._terms(risk, kl)
        return {
            "epoch": p.epoch,
            "stage": p.stage,
            "step": p.step,
            "risk": risk,
            "train": self._scores(self._train_view),
            "test": self._scores(self._test_view) if self._test_view else None,
            "kl": kl,
            "gamma": gamma,
            "bound": total,
            "kl_term": kl_term,
            "complexity": complexity,
            "prior_std": posterior.prior_std(),
            "posterior_std": posterior.mean_std(),
        }

    def _terms(self, risk: float, kl: float) -> tuple[float, float, float, float]:
        """The bound, γ, and how the bound is made up beside the risk: the divergence's term and the complexity."""
        bound = self.bound
        if isinstance(bound, Unbounded):
            total, gamma, complexity = bound.value(risk, kl, self.posterior.prior_log_std.detach())
            return total, gamma, (bound.nats + kl) / (gamma * bound.n), complexity
        total = bound.value(risk, kl)
        slope_risk, slope_kl = bound.slopes(min(max(risk, 1e-6), 1 - 1e-6), kl)
        return total, slope_risk / (slope_kl * bound.n), total - risk, 0.0

    def _scores(self, view: Iterable[Any]) -> Record:
        model = self.posterior.model
        if batch_norms(model):
            with batch_statistics(model):
                scores = measure(model, view, self.scored)
        else:
            scores = evaluate(model, view, self.scored)
        return {k: v for k, v in scores.items() if k != "n"}

    def _not_finite(self, value: float) -> TrainingError:
        posterior, p = self.posterior, self.progress
        if self.curvature is not None:
            self.curvature.rest()
        with torch.no_grad():
            moved = posterior.mean_shift().abs() / posterior.log_std.exp()
            peaks = [float(moved[at].max()) for at in posterior.group_slices]
        bad = [g for g, peak in zip(posterior.groups, peaks, strict=True) if not math.isfinite(peak)]
        group = bad[0] if bad else posterior.groups[max(range(len(peaks)), key=peaks.__getitem__)]
        why = "holds weights that are not finite" if bad else "has moved furthest from its start"
        return TrainingError(
            f"the loss became {value} at step {p.step + 1} (epoch {p.epoch + 1}, stage {p.stage}); "
            f"the group of weights {group!r} {why}. "
            "Scale the inputs to about unit size, look for a logarithm or a division by zero in the loss, "
            "or pass an optimiser with a smaller rate"
        )

    # -- state -----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything needed to go on, as named tensors and plain values."""
        tensors, packed = pack_optimizer(self.optimizer) if self.optimizer is not None else ({}, {})
        tensors |= {f"posterior/{k}": v for k, v in unique_state(self.posterior).items()}
        if self.curvature is not None:
            tensors |= self.curvature.state()
        if self.stage1_end is not None:
            tensors |= {f"stage1/{f.name}": getattr(self.stage1_end, f.name) for f in fields(Snapshot)}
        values = asdict(self.progress)
        values["best_loss"] = None if math.isinf(self.progress.best_loss) else self.progress.best_loss
        weight = None if self.curvature is None else self.curvature.kl_weight
        if self._best is not None:
            tensors |= {f"best/{k}": v for k, v in self._best.back().items()}
        walk = None if self.walk is None else self.walk.state()
        return tensors, {"progress": values, "optimizer": packed, "kl_weight": weight, "walk": walk}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go back to a state."""
        kept = {k.removeprefix("posterior/"): v for k, v in tensors.items() if k.startswith("posterior/")}
        with torch.no_grad():
            for name, tensor in unique_state(self.posterior).items():
                tensor.copy_(kept[name])
        if self.curvature is not None:
            self.curvature.restore(tensors)
            self.curvature.kl_weight = values["kl_weight"]
        if "stage1/means" in tensors:
            device = self.posterior.log_std.device
            self.stage1_end = Snapshot(**{f.name: tensors[f"stage1/{f.name}"].to(device) for f in fields(Snapshot)})
        if self.optimizer is not None:
            unpack_optimizer(self.optimizer, tensors, values["optimizer"])
        if self.walk is not None:
            self.walk.load(values["walk"])
            self.held_gamma = self.walk.gamma
            best = {k.removeprefix("best/"): v for k, v in tensors.items() if k.startswith("best/")}
            self._best = Kept(best) if best else None
        progress = dict(values["progress"])
        progress["best_loss"] = math.inf if progress["best_loss"] is None else progress["best_loss"]
        self.progress = Progress(**progress)


def unique_state(module: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, each storage once (tied weights are one weight)."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def adam(groups: list[dict[str, Any]], lrs: tuple[float, float]) -> torch.optim.Optimizer:
    """The default optimiser, as one kernel for all weights where torch has one."""
    rates = [group | {"lr": rate} for group, rate in zip(groups, lrs, strict=False)]
    devices = {p.device.type for group in groups for p in group["params"]}
    return torch.optim.Adam(rates, fused=True if devices <= {"cpu", "cuda"} else None)
