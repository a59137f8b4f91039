"""A prior learned from rows that the bound does not count."""

import math

import numpy as np
from torch import nn

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.dropout import dropout_rate, dropping
from pactrain.problem.module_modes import estimate_batch_norm
from pactrain.problem.read import Problem
from pactrain.problem.untrained import Untrained, measure_untrained, training_mode
from pactrain.rules.presets import AUTO
from pactrain.rules.start_values import held_gamma, linearised_at_start, normalised_classes, rate, start_std
from pactrain.runtime import distributed
from pactrain.runtime.events import Callback, Event
from pactrain.runtime.seeds import derive
from pactrain.runtime.trained_models import TRAINED
from pactrain.training.gamma_search import HeldGamma
from pactrain.training.options import Options
from pactrain.training.plan import Plan
from pactrain.training.prior_scan import PriorScan
from pactrain.training.trainer import Stopped, Trainer


def train_prior(model: nn.Module, problem: Problem, options: Options, *, notify: Callback) -> float:
    """Train `model` by the `auto` rules on the prior's rows of the problem: it becomes the prior's mean.

    Args:
        model: The network.
        problem: Its rows for the prior are trained on, with the user's own loss.
        options: What the caller asked for.
        notify: Hears of every epoch.

    Returns:
        The prior's std.

    Raises:
        KeyboardInterrupt: The user asked for an end; there is nothing yet that could be kept.
    """
    rows = problem.prior_rows
    assert rows is not None
    rows.batch_size = AUTO.batch(len(rows))
    sample = next(iter(rows.ordered()))
    own = Problem(rows, None, sample, problem.loss, problem.loss)
    posterior = Posterior(model, Prior())
    untrained = measure_untrained(model, rows, own.loss)
    trainer = Trainer(posterior, own, _plan(posterior, own, untrained, options))
    TRAINED.add(model)
    try:
        with dropping(model, dropout_rate(model)):
            for record in trainer.epochs():
                done = trainer.progress.epoch
                notify(Event("prior", done, max(done, trainer.pace.stage1_limit), record))
    except Stopped:
        raise KeyboardInterrupt from None
    distributed.same_weights(model)
    estimate_batch_norm(model, rows.ordered(), own.loss)
    return _quiet_std(model, own, untrained, options)


def _plan(posterior: Posterior, own: Problem, untrained: Untrained, options: Options) -> Plan:
    """The plan of the `auto` rules, with the part of the budget that the prior may take; the stds are placed."""
    n, model, seed = untrained.n, posterior.model, options.seed
    moment = PriorScan(posterior, own.batches, own.loss, AUTO, untrained, seed).moment()
    bound = AUTO.bound(n, options.delta, moment, len(posterior.groups))
    std = start_std(AUTO, posterior, bound)
    posterior.reset_std(std)
    training_mode(model)
    normalised = n * normalised_classes(model, own.loss, own.sample)
    gamma = held_gamma(
        AUTO, linearised_at_start(AUTO, posterior, own.batches, own.loss, seed), std, normalised=normalised
    )
    return Plan(
        rules=AUTO,
        bound=bound,
        moment=moment,
        untrained=untrained,
        gamma=HeldGamma(distributed.from_first(gamma)[0]),
        lr=rate(AUTO, std, posterior, own.loss, own.sample),
        budget=options.limit.of(max(0.0, options.left())).part(options.prior_data),
        seed=derive(seed, "prior"),
        stop=options.stop,
        computing=options.computing,
    )


def _quiet_std(model: nn.Module, own: Problem, untrained: Untrained, options: Options) -> float:
    """The largest std of the scan at which noise adds no more loss, in units of the untrained network's, than the least
    that any bound on as many rows charges, ln(2√n/δ)/n: a wider prior would lose more by noise than moving could gain."""
    posterior, n = Posterior(model, Prior()), untrained.n
    moment = PriorScan(posterior, own.batches, own.loss, AUTO, untrained, options.seed).moment()
    noisy = moment.means.mean(axis=1)
    allowed = abs(untrained.loss) * math.log(2 * math.sqrt(n) / options.delta) / n
    return float(np.exp(moment.log_stds[np.flatnonzero(noisy <= noisy[0] + allowed).max(initial=0)]))
