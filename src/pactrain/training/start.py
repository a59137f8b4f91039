"""The start of training: the noise around the initial weights, and the training plan that follows from it."""

import math
import time
from dataclasses import dataclass, replace

from torch import Tensor, nn

from pactrain.bounds.base import Bound
from pactrain.bounds.moment import Moment
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior, trained_source
from pactrain.problem.module_modes import own_buffers
from pactrain.problem.read import Problem
from pactrain.problem.untrained import Untrained, measure_untrained, shapes_named, training_mode
from pactrain.rules.choose_units import Scaled
from pactrain.rules.constants import EXAMPLES, SCAN_SHARE
from pactrain.rules.gamma.linear_leave_one_out import Linearised
from pactrain.rules.gamma.trained_leave_one_out import LeaveOneOut
from pactrain.rules.gamma.walk import leave_out
from pactrain.rules.initial_scale import strengthen
from pactrain.rules.start_values import held_gamma, normalised_classes, rate, start_std, strength
from pactrain.runtime import distributed
from pactrain.runtime.devices import give_memory_back
from pactrain.runtime.events import Callback, Event
from pactrain.training.choose_bound import make_bound
from pactrain.training.gamma_search import HeldGamma
from pactrain.training.options import Options
from pactrain.training.plan import Plan
from pactrain.training.prior_from_data import train_prior
from pactrain.training.prior_scan import MomentStore, PriorScan
from pactrain.training.time_left import for_training


@dataclass(frozen=True)
class Start:
    """The network with its prior, and what was seen of it before training.

    Attributes:
        options: What the caller asked for.
        scaled: The problem as it came, and in the units that it is trained in.
        posterior: The distribution over the network's weights.
        prior: The prior, with the std that its own training found if it had rows of its own.
        untrained: The scores of the untrained network.
        seconds: Time that one pass over the examples took.
        strength: How far the data may move the weights; None where γ does not follow from it.
        strengthened: True if faint layers were scaled first.
        buffers: Copies of the network's buffers before it saw the counted examples.
        before: Examples that the prior has seen: those of the levels before, for a recursive certificate.
    """

    options: Options
    scaled: Scaled
    posterior: Posterior
    prior: Prior
    untrained: Untrained
    seconds: float
    strength: Linearised | None
    strengthened: bool
    buffers: dict[str, Tensor]
    before: int = 0

    @property
    def problem(self) -> Problem:
        """The problem in the units that it is trained in."""
        return self.scaled.problem

    @property
    def counted(self) -> int:
        """Examples as the training objective counts them: for a recursive certificate, all that the prior has not seen."""
        n = self.untrained.n
        if self.options.certificate == "recursive":
            n += sum(len(block) for block in self.problem.blocks) - self.before
        return n * self.problem.batches.counts

    @property
    def blocks(self) -> int:
        """Blocks of examples that the network is judged by before it is trained on them."""
        return len(self.problem.blocks)

    def grown(self, blocks: int) -> "Start":
        """The start with so many of its blocks among the examples; those of the last were not seen before."""
        scaled = replace(self.scaled, given=self.scaled.given.grown(blocks), problem=self.problem.grown(blocks))
        batches = scaled.problem.batches
        n = self.untrained.n + sum(len(block) for block in self.problem.blocks[:blocks])
        untrained = replace(self.untrained, scores=self.untrained.scores | {"n": n}, steps=batches.steps or 1)
        before = n - len(self.problem.blocks[blocks - 1]) if 0 < blocks <= self.blocks else self.before
        return replace(self, scaled=scaled, untrained=untrained, before=before)

    @property
    def notify(self) -> Callback:
        """All callbacks as one, to which the network is shown in the units of the user."""
        return self.scaled.units.notifier(self.posterior.model, self.options.notify)


def make_start(model: nn.Module, scaled: Scaled, options: Options) -> Start:
    """Scale faint layers, train the prior if it has rows of its own, and measure the network."""
    rules, prior, problem = options.rules, options.prior_spec, scaled.problem
    with shapes_named(problem.sample):
        strengthened = rules.strengthen and strengthen(model, problem.sample, problem.loss, options.seed)
    if problem.prior_rows is not None:
        std = train_prior(model, problem, options, notify=scaled.units.notifier(model, options.notify))
        prior = prior.fixed(std, trained_source(len(problem.prior_rows), prior.source))
    buffers = {name: buffer.clone() for name, buffer in own_buffers(model).items()}
    posterior = Posterior(model, prior)
    posterior.probabilities = problem.loss.probabilities
    posterior.unit_nats = scaled.units.nats
    began = time.monotonic()
    with shapes_named(problem.sample):
        untrained = measure_untrained(model, problem.batches, problem.trained_on)
    seconds = distributed.from_first(time.monotonic() - began)[0]
    found = strength(rules, posterior, problem.batches, problem.trained_on, options.seed)
    return Start(options, scaled, posterior, prior, untrained, seconds, found, strengthened, buffers)


def place_prior(start: Start, store: MomentStore) -> tuple[Moment, float]:
    """Give prior and posterior their first std.

    Returns:
        The scan, and that std.
    """
    posterior, problem, options = start.posterior, start.problem, start.options
    rules = options.rules
    scan = PriorScan(
        posterior,
        problem.batches,
        problem.loss,
        rules,
        start.untrained,
        options.seed,
        notify=_ended_by_ctrl_c(start),
        most=_affordable(start),
    )
    moment = scan.moment(store)
    std = start_std(rules, posterior, rules.bound(start.counted, options.delta, moment, len(posterior.groups)))
    std = start.prior.std if start.prior.std is not None else std
    posterior.reset_std(std)
    return moment, std


def bound_of(start: Start, moment: Moment, std: float) -> Bound:
    """The bound that training minimises, from a prior that has been placed at `std`."""
    options = start.options
    return make_bound(
        options.bound,
        options.rules,
        n=start.counted,
        delta=options.delta,
        moment=moment,
        groups=len(start.posterior.groups),
        start_log_std=math.log(std),
    )


def plan_of(start: Start, moment: Moment, std: float) -> Plan:
    """The plan for the two stages, from a prior that has been placed at `std`."""
    posterior, problem, options = start.posterior, start.problem, start.options
    rules, loss = options.rules, problem.trained_on
    bound = bound_of(start, moment, std)
    training_mode(posterior.model)
    normalised = start.counted * normalised_classes(posterior.model, loss, problem.sample)
    gamma = HeldGamma(distributed.from_first(held_gamma(rules, start.strength, std, normalised=normalised))[0])
    if bound.holds_gamma:
        gamma = replace(gamma, left_out=_left_out(start))
    give_memory_back()
    budget = options.limit.of(for_training(options, start.seconds))
    if options.certificate == "progressive":
        budget = replace(budget, seconds=budget.seconds / 2)  # the other half is for training on the blocks
    return Plan(
        rules=rules,
        bound=bound,
        moment=moment,
        untrained=start.untrained,
        gamma=gamma,
        lr=rate(rules, std, posterior, loss, problem.sample),
        budget=budget,
        seed=options.seed,
        optimizer=options.optimizer,
        computing=options.computing,
        stop=options.stop,
    )


def _left_out(start: Start) -> LeaveOneOut | None:
    """The leave-one-out estimate that a search over γ follows; None where there is no search, or some process cannot follow it."""
    strength, problem, options, found = start.strength, start.problem, start.options, None
    clipped = problem.trained_on is not problem.loss  # and cannot be compared with the user's own
    if options.rules.held == "walk" and strength is not None and strength.classes and not clipped:
        found = leave_out(start.posterior, problem.batches, problem.trained_on, start.untrained.n, options.seed)
    return None if distributed.largest(float(found is None)) else found


def _affordable(start: Start) -> float:
    """Examples that may be scanned in a share of the budget, be it time or epochs: a pass over all of them took `start.seconds`, an
    epoch of training counts as three.  A budget in epochs leaves as many as leave-one-out has."""
    rules, limit = start.options.rules, start.options.limit
    in_one_pass = start.untrained.n / (rules.draws * rules.std_points)
    by_time = SCAN_SHARE * max(0.0, start.options.left()) / max(start.seconds, 1e-9) * in_one_pass
    by_epochs = max(EXAMPLES, SCAN_SHARE * 3 * (limit.epochs or math.inf) * in_one_pass)
    return min(by_time, by_epochs)


def _ended_by_ctrl_c(start: Start) -> Callback:
    """A callback that passes the scan's progress on, and ends the run after Ctrl-C: nothing is trained yet that could be kept."""
    heard = start.notify

    def notify(event: Event) -> None:
        heard(event)
        if start.options.stop() and distributed.world() == 1:
            raise KeyboardInterrupt

    return notify
