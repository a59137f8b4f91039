"""Where training starts: the prior's mean, and the noise around it."""

from dataclasses import dataclass
from functools import partial

from torch import nn

from pactrain.auto import Strength
from pactrain.centre import belongs_at_zero, centre_at_zero
from pactrain.evaluate import Scores
from pactrain.losses import Loss
from pactrain.moment import Moment
from pactrain.options import Options
from pactrain.posterior import Posterior
from pactrain.preparation import counts, look_at_data, scan, shapes_named
from pactrain.prior import Prior
from pactrain.problem import Problem
from pactrain.runs import RunFolder


@dataclass(frozen=True)
class Start:
    """The network with its prior, and what was seen of it before training."""

    posterior: Posterior
    prior: Prior
    scores: Scores  # of the untrained network
    steps: int  # batches an epoch
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


def look_at_start(model: nn.Module, problem: Problem, *, prior: Prior, strengthened: bool, options: Options) -> Start:
    """Measure the untrained network, and decide where its prior's mean belongs."""
    posterior = Posterior(model, prior)
    posterior.probabilities = problem.loss.probabilities if isinstance(problem.loss, Loss) else None
    batches, loss = problem.batches, problem.trained_on
    with shapes_named(problem.sample):
        scores, steps = look_at_data(posterior, batches, loss)
    n = int(scores["n"])
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
    return Start(posterior, prior, scores, steps, n * counts(batches), strength, strengthened, at_zero)


def place_prior(start: Start, problem: Problem, *, options: Options, folder: RunFolder | None) -> tuple[Moment, float]:
    """Put the prior's mean where it belongs, and give prior and posterior their first std.  Returns the scan, and that std."""
    posterior, rules = start.posterior, options.rules
    scanned = partial(
        scan, posterior, problem.batches, problem.loss, rules, start.n, start.steps, options.seed, options.tell
    )
    moment = scanned(None if start.at_zero else folder)
    std = rules.start_std(posterior, rules.bound(start.counted, options.delta, moment, len(posterior.groups)))
    std = start.prior.std if start.prior.std is not None else std
    if start.at_zero:  # after the scan: how much noise the network bears at first shows around its initial weights
        centre_at_zero(posterior)
        moment = scanned(folder, below=std)
    posterior.reset_std(std)
    return moment, std
