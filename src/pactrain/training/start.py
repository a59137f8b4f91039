"""Where training starts: the prior's mean, and the noise around it."""

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from torch import nn

from pactrain.bounds.moment import LOG_STD_RANGE, Moment, log_grid
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.problem.read import Problem, counts
from pactrain.problem.scores import Scores
from pactrain.problem.untrained import look_at_data, shapes_named
from pactrain.rules.presets import FEWEST_SCANNED, Rules, Strength
from pactrain.rules.prior_mean import belongs_at_zero, centre_at_zero
from pactrain.runtime import distributed
from pactrain.runtime.events import Callback, Event
from pactrain.scan.estimate import estimate_moment
from pactrain.training.options import Options


@dataclass(frozen=True)
class Start:
    """The network with its prior, and what was seen of it before training."""

    posterior: Posterior
    prior: Prior
    scores: Scores  # of the untrained network
    steps: int  # batches an epoch
    seconds: float  # that one pass over the examples took
    counted: int  # examples as the training objective counts them
    strength: Strength | None
    strengthened: bool  # were faint layers scaled first?
    at_zero: bool  # does the prior's mean belong there?

    @property
    def n(self) -> int:
        """Examples to train on."""
        return int(self.scores["n"])

    @property
    def prior_mean(self) -> str:
        """Where the prior's mean is, in words."""
        return "zero" if self.at_zero else "initial weights"


class MomentStore(Protocol):
    """Where the scan is kept, so that a resumed run need not repeat it."""

    def moment(self) -> Moment | None:
        """The scan, if it was completed."""

    def write_moment(self, moment: Moment) -> None:
        """Keep the scan."""


def look_at_start(model: nn.Module, problem: Problem, *, prior: Prior, strengthened: bool, options: Options) -> Start:
    """Measure the untrained network, and decide where its prior's mean belongs."""
    posterior = Posterior(model, prior)
    posterior.probabilities = problem.loss.probabilities if isinstance(problem.loss, Loss) else None
    batches, loss = problem.batches, problem.trained_on
    began = time.monotonic()
    with shapes_named(problem.sample):
        scores, steps = look_at_data(model, batches, loss)
    n, seconds = int(scores["n"]), distributed.from_first(time.monotonic() - began)[0]
    strength = options.rules.strength(model, batches, loss, options.seed)
    at_zero = belongs_at_zero(
        posterior,
        options.rules,
        strength,
        loss,
        problem.sample,
        n=n,
        start_loss=scores["loss"],
        free=prior.learn and not options.prior_data and options.optimizer is None,
    )
    return Start(posterior, prior, scores, steps, seconds, n * counts(batches), strength, strengthened, at_zero)


def place_prior(start: Start, problem: Problem, *, options: Options, store: MomentStore | None) -> tuple[Moment, float]:
    """Put the prior's mean where it belongs, and give prior and posterior their first std.  Returns the scan, and that std."""
    posterior, rules = start.posterior, options.rules
    tell, most = _ended_by_ctrl_c(options), _affordable(start, options)
    scanned = partial(
        scan, posterior, problem.batches, problem.loss, rules, start.n, start.steps, options.seed, tell, most=most
    )
    moment = scanned(store=None if start.at_zero else store)
    std = rules.start_std(posterior, rules.bound(start.counted, options.delta, moment, len(posterior.groups)))
    std = start.prior.std if start.prior.std is not None else std
    if start.at_zero:  # after the scan: how much noise the network bears at first shows around its initial weights
        centre_at_zero(posterior)
        moment = scanned(store=store, below=std)
    posterior.reset_std(std)
    return moment, std


def _affordable(start: Start, options: Options) -> float:
    """Examples that may be scanned in a share of the budget's time, by what one pass over all of them took."""
    rules = options.rules
    passes = rules.scan_share * options.budget.seconds / max(start.seconds, 1e-9)
    return passes * start.n / (rules.draws * rules.std_points) if math.isfinite(passes) else math.inf


def _ended_by_ctrl_c(options: Options) -> Callback:
    """Tells of the scan, and ends it where Ctrl-C was pressed: nothing has been trained yet that a better moment would save."""

    def tell(event: Event) -> None:
        options.tell(event)
        if options.stop() and distributed.world() == 1:
            raise KeyboardInterrupt

    return tell


def scan(
    posterior: Posterior,
    batches: Batches,
    loss: AnyLoss,
    rules: Rules,
    n: int,
    steps_per_epoch: int,
    seed: int,
    tell: Callback,
    *,
    store: MomentStore | None = None,
    most: float = math.inf,
    below: float | None = None,
) -> Moment:
    """The moment table, from `most` examples at most where time is short.

    below: of a prior around zero that starts there and can only shrink: no wider one is looked at.
    """
    found = store.moment() if store is not None else None
    kept = distributed.document_from_first(found.to_dict() if found is not None and distributed.world() > 1 else None)
    if found is not None or kept is not None:
        return found or Moment.from_dict(kept)
    low, high = LOG_STD_RANGE
    log_stds = [low + (high - low) * i / (rules.std_points - 1) for i in range(rules.std_points)]
    moment = estimate_moment(
        posterior,
        batches,
        loss,
        gammas=log_grid(rules.gamma_min, rules.gamma_max, rules.gamma_points),
        log_stds=log_stds if below is None else log_stds[: max(2, sum(x <= math.log(below) + 1e-6 for x in log_stds))],
        draws=rules.draws if below is None else rules.centre_draws,
        max_examples=int(min(rules.examples_to_scan(n, steps_per_epoch), max(FEWEST_SCANNED, most))),
        n=n,
        seed=seed,
        progress=tell,
    )
    if store is not None:
        store.write_moment(moment)
        return store.moment() or moment  # what a resumed run would read, to the last bit
    return moment
