"""Every statement of real certificates against an oracle that shares no code with the library; and the oracle against broken libraries."""

import importlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from pactrain.bounds.betting import Histogram
from pactrain.distributions import divergence
from pactrain.distributions.posterior import Posterior
from tests.oracle.cases import CASES
from tests.oracle.complaints import complaints, digest
from tests.oracle.networks import noise_for
from tests.oracle.runs import Done, again, carry_out
from tests.oracle.statements import END, STAGE_1

formulas = importlib.import_module("pactrain.certification.statement")
statements: Any = importlib.import_module("pactrain.certification.make_statements")
estimated: Any = importlib.import_module("pactrain.certification.unbounded_loss")

Runs = Callable[[str], Done]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Each case is carried out once."""

    @cache
    def run(name: str) -> Done:
        return carry_out(CASES[name](tmp_path_factory.mktemp(name)))

    return run


@pytest.mark.parametrize("name", CASES)
def test_every_statement_and_every_input_is_what_the_oracle_computes(name: str, runs: Runs) -> None:
    done = runs(name)
    assert complaints(done.record, done.run) == []
    assert done.result.certificate.recheck()


@pytest.mark.parametrize("name", CASES)
def test_the_mean_of_the_prior_is_where_it_is_said_to_be(name: str, runs: Runs) -> None:
    done = runs(name)
    assert not done.result.metrics["strengthened"]
    if done.case.more.get("prior_data"):
        assert not np.array_equal(done.run.prior_mean, done.initial)
        return
    assert np.array_equal(done.run.prior_mean, done.initial * done.run.units)


def test_the_cases_are_what_their_names_say(runs: Runs) -> None:
    measured = {name: runs(name).record["measured"] for name in CASES}
    assert [name for name in CASES if measured[name]["scheme"] == "chunks"] == ["graph", "chunks"]
    assert STAGE_1 in runs("two_stages").run.states
    assert runs("units_of_targets").run.units.max() == 256
    assert runs("units_of_inputs").run.units.min() == 1 / 1024
    assert len(runs("walk").result.metrics["left_out"]) > 1
    assert measured["without_test"]["values"] == 50 * measured["without_test"]["n"]
    assert measured["chunks"]["values"] == 129 * 128 / 33  # chunks of 32, 32, 32 and 33


def test_copies_of_rows_are_counted_once(runs: Runs) -> None:
    done = runs("default")
    copied = tuple(torch.cat([part, part[:50]]) for part in done.case.data)
    record, run = again(replace(done, case=replace(done.case, data=copied)))
    assert "50 training rows are copies of others" in record["notes"][0]
    assert complaints(record, run) == []


def test_the_drawn_network_is_the_one_that_was_certified(runs: Runs) -> None:
    done = runs("default")
    state, run = done.run.states[END], done.run
    expected = state.mean + np.exp(state.log_std) * noise_for(len(state.mean), run.seed, "one network")
    model: Any = done.result.posterior.drawn(run.seed)
    found = torch.cat([model.get_parameter(name).detach().reshape(-1) for name in run.network.names])
    assert np.allclose(found.numpy(), expected, rtol=1e-6, atol=1e-7)


# -- teeth -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "units_of_inputs", "fixed_prior"])
def test_an_unbroken_library_passes(name: str, runs: Runs) -> None:
    assert complaints(*again(runs(name))) == []


Patch = pytest.MonkeyPatch


def inputs(bound: str, **changes: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """A library that puts other inputs into the statements of a bound, and computes their values from them."""

    module = estimated if bound == "unbounded" else statements

    def broken(patch: Patch) -> None:
        own = module.statement

        def statement(quantity: str, who: str, label: str, name: str, given: dict[str, Any], **more: Any) -> Any:
            if name.startswith(bound):
                given = given | {k: change(given[k]) for k, change in changes.items()}
            return own(quantity, who, label, name, given, **more)

        patch.setattr(module, "statement", statement)

    return broken


def measured(**changes: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """A library whose measurement of the risk is wrong."""

    def broken(patch: Patch) -> None:
        own = statements.measure_risks

        def measure(*args: Any, **kwargs: Any) -> Any:
            found = own(*args, **kwargs)
            return replace(found, **{k: change(getattr(found, k)) for k, change in changes.items()})

        patch.setattr(statements, "measure_risks", measure)

    return broken


def half_price(patch: Patch) -> None:
    own = statements.priced_prior
    patch.setattr(statements, "priced_prior", lambda p: replace(own(p), nats=own(p).nats / 2))


def mean_moment(patch: Patch) -> None:
    def mean(table: Any, _: int) -> Any:
        return np.maximum(np.logaddexp.reduce(table, axis=0) - math.log(len(table)), 0.0)

    patch.setattr(estimated, "_mfold", mean)


def kl_at_the_prior_as_learned(patch: Patch) -> None:
    own = Posterior.kl_by_group
    patch.setattr(Posterior, "kl_by_group", lambda self, _=None: own(self))


def kl_of_stds_alone(patch: Patch) -> None:
    patch.setattr(divergence, "exact_shift", lambda weights: torch.zeros_like(weights.prior_mean).double())


def another_stream(patch: Patch) -> None:
    own = statements.generator
    patch.setattr(statements, "generator", lambda device, seed, *path: own(device, seed + 1, *path))


def measuring_is_free(patch: Patch) -> None:
    patch.setattr(formulas, "risk_bound", lambda bins, counts, *_: Histogram.read(bins, counts).mean)


def draws_are_means(patch: Patch) -> None:
    own = importlib.import_module("pactrain.certification.risks").noisy_layers
    patch.setattr(
        "pactrain.certification.risks.noisy_layers",
        lambda p: [(m, 0 * w, None if b is None else 0 * b) for m, w, b in own(p)],
    )


def psi_of_the_posterior(patch: Patch) -> None:
    own = estimated.moment_at

    def moment_at(posterior: Posterior, *args: Any, **kwargs: Any) -> Any:
        kept = posterior.prior_mean.clone()
        posterior.prior_mean += posterior.mean_shift()
        try:
            return own(posterior, *args, **kwargs)
        finally:
            posterior.prior_mean.copy_(kept)

    patch.setattr(estimated, "moment_at", moment_at)


def doubled(x: float) -> float:
    return 2 * x


def fewer(text: str) -> str:
    """A histogram in which the largest value was seen once less."""
    *others, (last, count) = (part.split(":") for part in text.split(" "))
    return " ".join(f"{i}:{c}" for i, c in [*others, (last, int(int(count) * 0.9))])


def lower(histograms: Any) -> Any:
    """Histograms of which every value lies a bin lower."""
    out = {}
    for key, found in histograms.items():
        counts = Counter[int]()
        for i, count in found.counts.items():
            counts[max(0, i - (found.bins > 1))] += count
        out[key] = replace(found, counts=dict(counts))
    return out


BROKEN: dict[str, tuple[str, Callable[[Patch], None], str]] = {
    "the KL of the unbounded statements is halved": ("regression", inputs("unbounded", kl=lambda x: x / 2), "kl is"),
    "the log-ratio is nothing": (
        "default",
        lambda p: p.setattr(Posterior, "log_ratio", lambda *_: 0.0),
        "log_ratio is",
    ),
    "the moment is the paper's": ("regression", mean_moment, "complexity is"),
    "the choice of γ is free": (
        "regression",
        inputs("unbounded", prior_nats=lambda x: x - math.log(40)),
        "prior_nats is",
    ),
    "the prior has half its price": ("default", half_price, "prior_nats is"),
    "one example too many is counted": ("default", measured(n=lambda n: n + 1), "n is"),
    "δ of the bound is doubled": ("default", inputs("kl", delta_bound=doubled), "delta_bound is"),
    "δ of the draws is doubled": ("default", inputs("kl", delta_draws=doubled), "delta_draws is"),
    "δ of the cross-entropy is doubled": ("default", inputs("bernstein", delta_bound=doubled), "of δ is spent"),
    "δ of the drawn network is doubled": ("default", inputs("disintegrated", delta_bound=doubled), "of δ is spent"),
    "the choice of u is free": ("default", inputs("bernstein", choices=lambda _: 4), "choices is"),
    "the choice of a threshold is free": ("regression", inputs("kl", choices=lambda _: 1), "choices is"),
    "u is another": ("default", inputs("bernstein", u=lambda x: x / 2), "u is"),
    "the loss has a smaller limit": ("default", inputs("bernstein", limit=lambda x: 0.9 * x), "limit is"),
    "units are free": ("units_of_inputs", lambda p: p.setattr(Posterior, "unit_nats", 0.0), "prior_nats is"),
    "the KL is taken at the prior as learned": ("default", kl_at_the_prior_as_learned, "kl is"),
    "the KL forgets the means": ("fixed_prior", kl_of_stds_alone, "kl is"),
    "values are counted twice": ("default", inputs("kl", values=lambda x: x / 2), "values is"),
    "values are lost": ("default", inputs("kl", counts=fewer, values=lambda x: 0.5 * x), "counts is"),
    "the error is measured without noise": ("default", draws_are_means, "counts is"),
    "the loss is a thousandth smaller": ("regression", measured(loss=lambda x: 0.999 * x), "risk is"),
    "values are rounded down": ("default", measured(histograms=lower), "counts is"),
    "another network is drawn": ("default", another_stream, "log_ratio is"),
    "an error of the test set is lost": ("default", inputs("test set", errors=lambda x: x - 1), "errors is"),
    "an error of the prior's network is lost": (
        "prior_from_half",
        inputs("counted rows", errors=lambda x: x - 1),
        "errors is",
    ),
    "ψ is that of networks around the posterior": ("regression", psi_of_the_posterior, "complexity is"),
    "ψ comes from fewer draws": ("regression", lambda p: p.setattr(estimated, "PSI_DRAWS", 10), "complexity is"),
    "ψ comes from fewer examples": ("regression", lambda p: p.setattr(estimated, "PSI_EXAMPLES", 200), "complexity is"),
    "measuring costs nothing": ("chunks", measuring_is_free, "the value is"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_oracle_complains_about_a_broken_library(what: str, runs: Runs, monkeypatch: Patch) -> None:
    name, broken, word = BROKEN[what]
    done = runs(name)
    broken(monkeypatch)
    record, run = again(done)
    assert any(word in complaint for complaint in complaints(record, run))


def sealed(record: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The record with changes, and the digest made anew."""
    changed = record | changes
    return changed | {"digest": digest(changed)}


def test_what_the_oracle_does_not_know_is_a_complaint(runs: Runs) -> None:
    done = runs("default")
    first, *others = done.record["statements"]
    for changed in (
        [first | {"quantity": "calibration error"}, *others],
        [first, *others, first],
        others,
        [first | {"inputs": first["inputs"] | {"discount": 1.0}}, *others],
    ):
        assert complaints(sealed(done.record, statements=changed), done.run)
    more = done.record["measured"] | {"values": 10**6}
    for key, value in (("budget", {"everything": 0.05}), ("n", 401), ("seed", 1), ("measured", more)):
        assert complaints(sealed(done.record, **{key: value}), done.run), key
    assert complaints(done.record | {"notes": ["edited"]}, done.run) == ["the digest does not fit"]
