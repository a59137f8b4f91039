"""Every statement that the certificate of a run must have, with every input, from weights, rows and seeds.  Nothing of pactrain is imported."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tests.oracle_formulas import (
    CLIPPED,
    GAMMAS,
    Array,
    best_gamma,
    dziugaite_roy,
    kl_terms,
    log_moments,
    log_ratio,
    n_fold,
    on_grid,
)
from tests.oracle_networks import Measured, Network, Rows, losses_of, measure, noise_for, prior_losses
from tests.oracle_objective import Objective, eta_constants, objective_terms

END, STAGE_1 = "end of training", "end of stage 1"
Key = tuple[str, str, str, str, str]  # quantity, predictor, bound, prior, when


class Number(NamedTuple):
    """What an input should be, and how far the record's may be from it."""

    value: float
    relative: float
    absolute: float = 0.0

    def is_near(self, found: float) -> bool:
        return abs(found - self.value) <= self.absolute + self.relative * abs(self.value)


def exact(value: float) -> Number:
    """Float64 arithmetic on both sides from the same stored numbers: only the order of operations may differ."""
    return Number(value, 1e-9)


def single(value: float, *, absolute: float = 0.0) -> Number:
    """The library's forward passes and terms of sums over weights are in float32 (six digits), ours in float64; 3e-7 was the most seen."""
    return Number(value, 1e-6, absolute)


def share(value: float, count: int) -> Number:
    """A share of wrong predictions among `count`: where two scores nearly agree, float32 may prefer the other; up to three may."""
    return Number(value, 1e-9, 3 / count)


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
    choices: int  # means of the prior that the rows could choose from
    unit_nats: float
    loss_unit: float = 1.0
    objective: Objective | None = None

    @property
    def classes(self) -> bool:
        return not self.rows.target.is_floating_point()

    @cached_property
    def events(self) -> list[str]:
        """What may fail."""
        ways = ["fixed in advance"] if self.fixed else ["prior grid", "Dziugaite-Roy"]
        if not self.classes:
            return ["unbounded loss"]
        kinds = [f"{what}, {way}" for what in ("0-1 error", "clipped loss") for way in ways]
        return ["unbounded loss", "one drawn network", *kinds, *(["test set"] if self.test is not None else [])]

    @property
    def each(self) -> float:
        """δ of one event."""
        return self.delta / len(self.events)


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

    def _kl_of_group(self, group: int, log_std: float) -> float:
        of = self.run.network.group_of == group
        prior = log_std + np.log(self.run.units[of])
        return float(kl_terms(self.shift[of], self.state.log_std[of], prior).sum())

    @cached_property
    def priors(self) -> dict[str, Priced]:
        """The ways of paying for the prior."""
        own, extra = self.state.prior_log_std, math.log(self.run.choices) + self.run.unit_nats
        if self.run.fixed:
            ways = {"fixed in advance": (own, 0.0)}
        else:
            ways = {"prior grid": on_grid(own), "Dziugaite-Roy": dziugaite_roy(own, self._kl_of_group)}
        return {name: Priced(groups, self.spread(groups), nats + extra) for name, (groups, nats) in ways.items()}

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
        run, prior = self.run, next(iter(self.priors.values()))
        std = np.exp(prior.weights)
        drawn = prior_losses(run.network, run.rows, run.prior_mean, std, seed=run.seed, unit=run.loss_unit)
        logs, errors = zip(*map(log_moments, drawn), strict=True)
        return np.array(logs), np.array(errors)

    # -- statements ----------------------------------------------------------------------------------------------------

    def expected(self) -> Iterator[tuple[Key, dict[str, Number]]]:
        """Every statement about this moment."""
        losses, count = self.measured.losses, len(self.measured.losses.loss)
        for name, prior in self.priors.items() if losses.error is not None else ():
            assert losses.error is not None
            mean = share(float(losses.error.mean()), count)
            yield self._kl_statement("0-1 error", name, prior, mean, 1.0)
            clipped = float(np.minimum(losses.loss, CLIPPED).mean()) / CLIPPED
            yield self._kl_statement("clipped loss", name, prior, single(clipped), CLIPPED)
        name, prior = next(iter(self.priors.items()))
        yield from (self._unbounded(form, name, prior) for form in ("cgf", "paper"))
        if losses.error is not None:
            yield self._drawn(name, prior)

    def _kl_statement(
        self, quantity: str, name: str, prior: Priced, mean: Number, scale: float
    ) -> tuple[Key, dict[str, Number]]:
        run = self.run
        return (quantity, "randomised predictor", "kl", name, self.when), {
            "mean": mean,
            "values": exact(self.measured.values),
            "delta_draws": exact(0.2 * run.each / len(run.states)),
            "kl": single(self.kl(prior.groups), absolute=1e-6),
            "prior_nats": exact(prior.nats),
            "n": exact(len(run.rows)),
            "delta_bound": exact(0.8 * run.each),
            "scale": exact(scale),
        }

    def _unbounded(self, form: str, name: str, prior: Priced) -> tuple[Key, dict[str, Number]]:
        run, risk = self.run, float(self.measured.losses.loss.mean())
        kl, n, confidence = self.kl(prior.groups), len(run.rows), math.log(1 / run.each)
        nats = prior.nats + math.log(len(GAMMAS))
        gamma, complexity = best_gamma(kl + nats + confidence, n, n_fold(self.table[0], n), form)
        quantity = "cross-entropy loss" if run.classes else "mse loss"
        return (quantity + units_named(run), "randomised predictor", f"unbounded ({form})", name, self.when), {
            "risk": single(risk),
            "kl": single(kl, absolute=1e-6),
            "prior_nats": exact(nats),
            "confidence_nats": exact(confidence),
            "n": exact(n),
            "gamma": exact(gamma),
            "complexity": single(complexity, absolute=1e-6 * risk),  # γ times a difference of losses in float32, over γ
        }

    def _drawn(self, name: str, prior: Priced) -> tuple[Key, dict[str, Number]]:
        run, state = self.run, self.state
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
            "delta_bound": exact(run.each / len(run.states)),
        }


def units_named(run: Run) -> str:
    """How a quantity says in which units its loss is."""
    return "" if run.loss_unit == 1 else f", in units of {run.loss_unit:,.0f}"


def held_out(run: Run) -> Iterator[tuple[Key, dict[str, Number]]]:
    """The statement from held-out rows."""
    if run.test is None or not run.classes:
        return
    error = losses_of(run.network.answers(run.states[END].mean, run.test), run.test.target).error
    assert error is not None
    inputs = {"errors": Number(float(error.sum()), 0, 0), "n": exact(len(error)), "delta_bound": exact(run.each)}
    yield ("0-1 error", "mean network", "test set", "", END), inputs


def training(run: Run) -> Iterator[tuple[Key, dict[str, Number]]]:
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


def expectations(run: Run) -> dict[Key, dict[str, Number]]:
    """Every statement that a certificate of this run must have, with all inputs; and no other."""
    found = dict(held_out(run)) | dict(training(run))
    for when in run.states:
        found |= dict(Moment(run, when).expected())
    return found
