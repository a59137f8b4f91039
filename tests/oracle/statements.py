"""Every statement that the certificate of a run must have, with every input, from weights, rows and seeds.  Nothing of pactrain is imported."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tests.oracle.formulas import (
    GAMMAS,
    VALUES,
    Array,
    best_gamma,
    dyadic,
    kl_terms,
    log_moments,
    log_ratio,
    n_fold,
)
from tests.oracle.networks import Measured, Network, Rows, losses_of, measure, noise_for, prior_losses
from tests.oracle.objective import Objective, eta_constants, objective_terms
from tests.oracle.tolerances import Histogram, Inputs, Number, exact, share, single

END, STAGE_1 = "end of training", "end of stage 1"
Key = tuple[str, str, str, str, str]  # quantity, predictor, bound, prior, when


@dataclass(frozen=True)
class State:
    """A posterior at one moment, in the units of the raw data; the prior's log-stds are those of its groups."""

    mean: Array
    log_std: Array
    prior_log_std: Array


@dataclass(frozen=True)
class Run:
    """What a certificate is about, and what is known of how it came about."""

    network: Network
    rows: Rows  # that are counted
    test: Rows | None
    states: Mapping[str, State]  # by moment of training
    prior_mean: Array
    units: Array  # of each weight
    seed: int
    delta: float
    draws: int  # asked for
    fixed: bool  # are the prior's stds chosen without the rows?
    unit_nats: float
    loss_unit: float = 1.0
    judged: bool = False  # is the prior's mean network judged by the counted rows?
    objective: Objective | None = None

    @property
    def classes(self) -> bool:
        return not self.rows.target.is_floating_point()

    @cached_property
    def budget(self) -> dict[str, float]:
        """δ of what may fail: half of it for the prior's mean network, if the rows had no part in it."""
        events = (
            ["0-1 error", "cross-entropy", "one drawn network"]
            if self.classes
            else ["large errors", "truncated squared error"]
        )
        events += ["test set"] if self.classes and self.test is not None else []
        rest = self.delta / 2 if self.judged else self.delta
        return {event: rest / len(events) for event in events} | ({"counted rows": rest} if self.judged else {})

    @property
    def moments(self) -> int:
        """How many posteriors are measured, or could have been."""
        return len(self.states) + self.judged

    @cached_property
    def constants(self) -> Array:
        """Squared errors of constant answers, one after the other: the mean and 19 quantiles of the targets."""
        y = np.sort(self.rows.target.numpy().reshape(len(self.rows), -1), axis=0)
        levels = [y.mean(0), *(y[round((len(y) - 1) * i / 20)] for i in range(1, 20))]
        return np.array([((y - level) ** 2).mean(1) for level in levels])

    @cached_property
    def shares(self) -> Array:
        """Shares of the classes."""
        return np.asarray(np.unique(self.rows.target.numpy(), return_counts=True)[1] / len(self.rows))


class Way(NamedTuple):
    """Something that is measured: values in [0, 1], and the inputs that say what they are parts of."""

    quantity: str
    values: Array
    constant: float  # what a constant answer has
    whole: bool  # 0 or 1?
    more: dict[str, float]


class Priced(NamedTuple):
    """The prior as a bound takes it: log-stds of the groups and of each weight, and the price in nats."""

    groups: Array
    weights: Array
    nats: float


@dataclass(frozen=True)
class Moment:
    """Everything about one moment of training."""

    run: Run
    when: str
    state: State = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", self.run.states[self.when])

    def spread(self, groups: Array) -> Array:
        """The prior's log-std of each weight from those of the groups."""
        return np.asarray(groups[self.run.network.group_of] + np.log(self.run.units))

    @cached_property
    def shift(self) -> Array:
        return self.state.mean - self.run.prior_mean

    def kl(self, groups: Array) -> float:
        return float(kl_terms(self.shift, self.state.log_std, self.spread(groups)).sum())

    @cached_property
    def prior(self) -> tuple[str, Priced]:
        """How the prior is paid for, and the prior."""
        own, extra = self.state.prior_log_std, self.run.unit_nats
        name, groups, nats = "fixed in advance", own, 0.0
        if not self.run.fixed:
            name, (groups, nats) = "dyadic steps", dyadic(own, self.run.network.inputs, self.kl)
        return name, Priced(groups, self.spread(groups), nats + extra)

    @cached_property
    def measured(self) -> Measured:
        run = self.run
        return measure(
            run.network,
            run.rows,
            self.state.mean,
            self.state.log_std,
            draws=run.draws,
            seed=run.seed,
            unit=run.loss_unit,
        )

    @cached_property
    def table(self) -> tuple[Array, Array]:
        """logM[draw, γ] at the first way's prior, and the standard errors."""
        run, (_, prior) = self.run, self.prior
        std = np.exp(prior.weights)
        drawn = prior_losses(run.network, run.rows, run.prior_mean, std, seed=run.seed, unit=run.loss_unit)
        logs, errors = zip(*map(log_moments, drawn), strict=True)
        return np.array(logs), np.array(errors)

    # -- statements ----------------------------------------------------------------------------------------------------

    def expected(self) -> Iterator[tuple[Key, Inputs]]:
        """Every statement about this moment."""
        losses = self.measured.losses
        if losses.error is not None:
            wrong = Way("0-1 error", losses.error, 1 - self.run.shares.max(), True, {"scale": 1.0})
            yield self._best("kl", "0-1 error", [wrong])
            yield self._best("bernstein", "cross-entropy", list(self._smoothed()))
            yield self._drawn()
        else:
            yield self._best("kl", "large errors", list(self._large()))
            yield self._best("kl", "truncated squared error", list(self._truncated()))
            yield from (self._unbounded(form) for form in ("cgf", "paper"))

    def _smoothed(self) -> Iterator[Way]:
        """Cross-entropy of (1 − ε) p + ε/K, for each ε and each u: X + κ X² in units of its largest value."""
        run, loss = self.run, self.measured.losses.loss
        classes = run.network.answers(self.state.mean, run.rows).shape[1]
        for epsilon in (0.01, 0.05, 0.1, 0.2):
            limit = math.log(classes / epsilon)
            constant = -(run.shares * np.log((1 - epsilon) * run.shares + epsilon / classes)).sum()
            for u in (0.03, 0.06, 0.12, 0.25, 0.35, 0.5, 0.7, 0.9):
                x = -np.log((1 - epsilon) * np.exp(-loss) + epsilon / classes)
                kappa = (-math.log(1 - u) - u) / (u * limit)
                values = (x + kappa * x**2) / (limit + kappa * limit**2)
                what = f"cross-entropy smoothed by {epsilon:g}"
                yield Way(what, values, float(constant), False, {"limit": limit, "u": u})

    def _large(self) -> Iterator[Way]:
        for t in 4.0 ** np.arange(-9, 10):
            values, constants = (
                np.asarray(x > t * t, dtype=np.float64) for x in (self.measured.losses.square, self.run.constants)
            )
            yield Way(f"share of errors above {t:g}", values, constants.mean(1).min(), True, {"scale": 1.0})

    def _truncated(self) -> Iterator[Way]:
        assert self.measured.losses.square is not None
        for t in 4.0 ** np.arange(-9, 10):
            values, constants = (np.minimum(x, t * t) for x in (self.measured.losses.square, self.run.constants))
            what = f"squared error cut off at {t * t:g}"
            yield Way(what, values / (t * t), constants.mean(1).min(), False, {"scale": t * t})

    def _best(self, bound: str, event: str, ways: list[Way]) -> tuple[Key, Inputs]:
        """The one of several statements that promises the most beside a constant answer."""
        (name, prior), delta, found = self.prior, self.run.budget[event], []
        for quantity, values, constant, whole, more in ways:
            bins, counts = self.measured.histogram(values, whole=whole)
            inputs: Inputs = {
                "bins": exact(bins),
                "counts": Histogram(" ".join(f"{i}:{c}" for i, c in counts.items()), bins),
                "values": exact(self.measured.values),
                "delta_draws": exact(0.2 * delta / self.run.moments),
                "choices": exact(len(ways)),
                "kl": single(self.kl(prior.groups), absolute=1e-6),
                "prior_nats": exact(prior.nats),
                "n": exact(len(self.run.rows)),
                "delta_bound": exact(0.8 * delta),
                **{k: exact(v) for k, v in more.items()},
            }
            promise = VALUES[bound]({k: v.value for k, v in inputs.items()}, exactly=True)
            found.append((promise / constant if constant else math.inf, quantity, inputs))
        _, quantity, inputs = min(found, key=lambda way: way[0])
        return (quantity, "randomised predictor", bound, name, self.when), inputs

    def _unbounded(self, form: str) -> tuple[Key, Inputs]:
        run, risk, (name, prior) = self.run, float(self.measured.losses.loss.mean()), self.prior
        kl, n, confidence = self.kl(prior.groups), len(run.rows), math.log(1 / run.delta)
        nats = prior.nats + math.log(len(GAMMAS))
        gamma, complexity = best_gamma(kl + nats + confidence, n, n_fold(self.table[0], n), form)
        return ("mse loss" + units_named(run), "randomised predictor", f"unbounded ({form})", name, self.when), {
            "risk": single(risk),
            "kl": single(kl, absolute=1e-6),
            "prior_nats": exact(nats),
            "confidence_nats": exact(confidence),
            "n": exact(n),
            "gamma": exact(gamma),
            "complexity": single(complexity, absolute=1e-6 * risk),  # γ times a difference of losses in float32, over γ
        }

    def _drawn(self) -> tuple[Key, Inputs]:
        run, state, (name, prior) = self.run, self.state, self.prior
        noise = noise_for(len(state.mean), run.seed, "one network")
        answers = run.network.answers(state.mean + np.exp(state.log_std) * noise, run.rows)
        error = losses_of(answers, run.rows.target).error
        assert error is not None
        ratio = log_ratio(self.shift, state.log_std, prior.weights, noise)
        # A sum of terms of both signs: what float32 does to it goes with their sizes, half a nat for each weight, not with the sum.
        return ("0-1 error", "one drawn network", "disintegrated", name, self.when), {
            "risk": share(float(error.mean()), len(error)),
            "log_ratio": single(ratio, absolute=1e-7 * len(noise)),
            "prior_nats": exact(prior.nats),
            "n": exact(len(run.rows)),
            "delta_bound": exact(run.budget["one drawn network"] / run.moments),
        }


def units_named(run: Run) -> str:
    """How a quantity says in which units its loss is."""
    return "" if run.loss_unit == 1 else f", in units of {run.loss_unit:,.0f}"


def judged(run: Run) -> Iterator[tuple[Key, Inputs]]:
    """The statements about networks that the rows which judge them had no part in."""
    if run.judged:
        who = "mean network" if np.array_equal(run.states[END].mean, run.prior_mean) else "prior's mean network"
        yield ("0-1 error", who, "counted rows", "", END), _errors(run, run.prior_mean, run.rows, "counted rows")
    if run.test is not None and run.classes:
        inputs = _errors(run, run.states[END].mean, run.test, "test set")
        yield ("0-1 error", "mean network", "test set", "", END), inputs


def _errors(run: Run, weights: Array, rows: Rows, event: str) -> Inputs:
    error = losses_of(run.network.answers(weights, rows), rows.target).error
    assert error is not None
    return {
        "errors": Number(float(error.sum()), 0, 0),
        "n": exact(len(error)),
        "delta_bound": exact(run.budget[event]),
    }


def training(run: Run) -> Iterator[tuple[Key, Inputs]]:
    """The training objective, and the paper's η, at the end of stage 1."""
    if run.objective is None:
        return
    moment = Moment(run, STAGE_1 if STAGE_1 in run.states else END)
    who = "training loss" + units_named(run), "randomised predictor"
    terms = objective_terms(run.objective, moment.kl(moment.state.prior_log_std), moment.state.prior_log_std)
    yield (*who, "training objective", "", STAGE_1), {k: single(v) for k, v in terms.items()}
    if run.objective.bounded:
        return
    lowest = moment.kl(np.full(run.network.groups, -6.0))
    mean, variance = moment.state.mean / run.units, np.exp(2 * moment.state.log_std) / run.units**2
    constants = eta_constants(run.objective, mean=mean, variance=variance, groups=run.network.groups, largest_kl=lowest)
    inputs = {"objective": sum(terms.values()), **constants}
    yield (*who, "training objective + η", "", STAGE_1), {k: single(v) for k, v in inputs.items()}


def expectations(run: Run) -> dict[Key, Inputs]:
    """Every statement that a certificate of this run must have, with all inputs; and no other."""
    found = dict(judged(run)) | dict(training(run))
    for when in run.states:
        found |= dict(Moment(run, when).expected())
    return found
