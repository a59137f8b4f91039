"""Certificates of trained networks against the true risk of the predictors that they speak of, over many data sets.

Everything is the product's own: `fit`, or `Posterior` with a few steps on a bound and `certify`.  Networks are linear, so that
the truth is exact (`worlds.py`), and training takes a few epochs with a coarse scan; a statement must hold however the network
was trained.  With all data sets (marked slow) every statement is tested on at least 2,000 of them in each way of training;
the fast part runs the same code on a few.

A statement is violated where its value is below the truth.  Each may be violated in the part of δ that its inputs name, and in
at most δ of the data sets any of them.  δ is large, so that a bound that is too small is seen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn

import pactrain
from pactrain.bounds import KL, Bound, Classic
from pactrain.certification.certificate import Certificate
from pactrain.certification.certify import Background
from pactrain.certification.statement import RANDOMISED, Statement, statement
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.losses import CLIP
from pactrain.rules.presets import AUTO, CERTIFY
from tests.statistics.worlds import INPUTS, Rows, World

DELTA = 0.3
TESTED = 20
GUARANTEED = ("kl", "bernstein", "disintegrated", "counted rows", "test set")
"""Bounds that need no estimate.  A statement is taken by its bound, not by its label: one that is true and says nothing counts too."""

FEW, MANY = 16, 2000
QUICK = AUTO.replace(
    name="quick", draws=2, std_points=3, gamma_points=4, fixed_epochs=16, held="gamma_max", lr=0.3, min_prior_std=0.1
)
"""A coarse scan, few epochs, and little weight on the divergence: networks that fit random labels."""

WORLDS = {
    "random labels, n = 1": World("random", 1),
    "random labels, n = 2": World("random", 2),
    "random labels, n = 10": World("random", 10),
    "random labels, n = 40": World("random", 40),
    "1 % positive, n = 100": World("1 % positive", 100),
    "learnable, n = 200": World("learnable", 200),
}


class Run(NamedTuple):
    """A certificate, the posterior it speaks of, and the posterior of an earlier moment that it speaks of as well."""

    certificate: Certificate
    posterior: Posterior
    earlier: Snapshot | None = None


def linear(seed: int) -> nn.Linear:
    torch.default_generator.manual_seed(seed)
    return nn.Linear(INPUTS, 2)


def fit(rows: Rows, test: Rows, seed: int, *, prior: pactrain.Prior | str = "layer", prior_data: float = 0.0) -> Run:
    """`fit` with the default objective and with the kl bound, in turn."""
    found = pactrain.fit(
        linear(seed),
        rows,
        bound=("auto", "kl")[seed % 2],
        prior=prior,
        preset=QUICK,
        budget="16 epochs",
        prior_data=prior_data,
        delta=DELTA,
        test=test,
        seed=seed,
        device="cpu",
    )
    return Run(found.certificate, found.posterior)


def fit_fixed(rows: Rows, test: Rows, seed: int) -> Run:
    """A prior that is not learned, and free."""
    return fit(rows, test, seed, prior=pactrain.Prior(std=0.3, learn=False))


def fit_prior_data(rows: Rows, test: Rows, seed: int) -> Run:
    """A prior trained on half of the rows."""
    return fit(rows, test, seed, prior_data=0.5)


def steps(rows: Rows, test: Rows, seed: int) -> Run:
    """A loop of one's own, and many draws: for `nn.Linear` each example is measured with a draw of its own.

    In turn the bound that is trained on counts the examples rightly, and a thousand times: random labels are fitted then.
    """
    posterior = Posterior(linear(seed), pactrain.Prior(per="tensor"))
    n = len(rows[1])
    _take_steps(posterior, rows, KL((1, 1000)[seed % 2] * n, DELTA), 12)
    draws = 40 * n
    return Run(pactrain.certify(posterior, rows, delta=DELTA, draws=draws, seed=seed, test=test), posterior)


class Wrapped(nn.Linear):
    """Not a linear layer by its type: measured with one draw for each chunk of examples."""


def steps_in_two_stages(rows: Rows, test: Rows, seed: int) -> Run:
    """A loop whose middle is stated as well, with a fixed prior and one draw for each chunk."""
    torch.default_generator.manual_seed(seed)
    posterior = Posterior(Wrapped(INPUTS, 2), pactrain.Prior(per="model", std=0.3, learn=False))
    n = len(rows[1])
    _take_steps(posterior, rows, KL(n, DELTA), 4)
    middle = posterior.snapshot()
    _take_steps(posterior, rows, Classic(1000 * n, DELTA), 6)
    background = Background(earlier={"end of stage 1": middle})
    certificate = pactrain.certify(posterior, rows, delta=DELTA, draws=30, seed=seed, test=test, background=background)
    return Run(certificate, posterior, middle)


def _take_steps(posterior: Posterior, rows: Rows, bound: Bound, number: int) -> None:
    limit = math.log(1 / CLIP)
    optimizer = torch.optim.Adam([p for p in posterior.parameters() if p.requires_grad], lr=0.3)
    for _ in range(number):
        optimizer.zero_grad()
        losses = F.cross_entropy(posterior(rows[0]), rows[1], reduction="none").clamp(max=limit) / limit
        bound(losses, posterior).total.backward()
        optimizer.step()


WAYS: dict[str, Callable[[Rows, Rows, int], Run]] = {
    "fit, learned prior": fit,
    "fit, prior fixed in advance": fit_fixed,
    "fit, prior from half of the rows": fit_prior_data,
    "steps, learned prior": steps,
    "steps in two stages, prior fixed in advance": steps_in_two_stages,
}

OVERFITTED = ("fit, prior fixed in advance", "steps, learned prior")
"""Ways in which random labels are fitted so well, and measured so often, that every statement fails once its inputs are broken.  In the
others the statements on the randomised predictor are held up by the price of few draws."""


# -- counting ----------------------------------------------------------------------------------------------------------


@dataclass
class Count:
    """Violations of one statement, as stated and with its inputs broken, and the part of δ that it may fail in."""

    share: float
    sets: int = 0
    violated: int = 0
    without_divergence: int = 0
    with_more_examples: int = 0
    values: float = 0.0


class Tally(NamedTuple):
    sets: int
    violated: int
    counts: dict[str, Count]


def without_divergence(s: Statement) -> float:
    """The value if learning cost nothing."""
    free = ("kl", "log_ratio", "prior_nats")
    return _again(s, {k: 0.0 if k in free else v for k, v in s.inputs.items()})


def with_more_examples(s: Statement) -> float:
    """The value if every example counted a hundred times."""
    return _again(s, {k: 100 * v if k in ("n", "errors") else v for k, v in s.inputs.items()})


def _again(s: Statement, inputs: dict[str, float]) -> float:
    return statement(s.quantity, s.predictor, s.label, s.bound, inputs).value


def simulate(way: str, world: str, sets: int) -> Tally:
    """Train and certify on `sets` data sets, and count."""
    counts: dict[str, Count] = {}
    any_violated = 0
    for seed in range(sets):
        place = WORLDS[world]
        run = WAYS[way](place.rows(2 * seed), place.rows(2 * seed + 1, TESTED), seed)
        truth = {"end of training": place.truth(run.posterior, seed)}
        if run.earlier is not None:
            truth["end of stage 1"] = place.truth_at(run.earlier, run.posterior, seed)
        stated = [s for s in run.certificate.statements if s.bound in GUARANTEED]
        below = [_count(counts, s, truth[s.when][s.quantity, s.predictor]) for s in stated]
        any_violated += any(below)
    return Tally(sets, any_violated, counts)


def _count(counts: dict[str, Count], s: Statement, truth: float) -> bool:
    kind = s.quantity.rpartition(" smoothed by ")[0] or s.quantity  # whichever smoothing was the best
    who = s.predictor if s.bound != "counted rows" else ""  # delivered or not
    name = ", ".join(filter(None, (kind, who, s.bound, s.prior, s.when)))
    share = sum(value for key, value in s.inputs.items() if key.startswith("delta_"))
    count = counts.setdefault(name, Count(share))
    low = truth - 1e-6  # rounding, and quadrature
    violated = s.value < low
    count.sets += 1
    count.violated += violated
    count.without_divergence += without_divergence(s) < low
    count.with_more_examples += with_more_examples(s) < low
    count.values += s.value
    return violated


def holds(violated: int, sets: int, delta: float) -> bool:
    """True if this many violations are compatible with a failure probability of at most δ."""
    return bool(stats.binomtest(violated, sets, delta, alternative="greater").pvalue > 1e-4)


# -- tests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sets", [FEW * len(WORLDS), pytest.param(MANY, marks=pytest.mark.slow)])
def test_statements_hold_in_every_world_and_broken_inputs_are_seen(way: str, sets: int) -> None:
    worlds = [w for w in WORLDS if "half" not in way or WORLDS[w].n > 1]
    tallies = {world: simulate(way, world, math.ceil(sets / len(worlds))) for world in worlds}
    for world, tally in tallies.items():
        assert holds(tally.violated, tally.sets, DELTA), (world, tally)
        for name, count in tally.counts.items():
            assert count.sets == tally.sets, (world, name)
            assert holds(count.violated, count.sets, count.share), (world, name, count)
    everything = [[tally.counts[name] for tally in tallies.values()] for name in tallies[worlds[0]].counts]
    assert any(_seen(c, "without_divergence") for c in everything)
    for name, counts in zip(tallies[worlds[0]].counts, everything, strict=True):
        if way in OVERFITTED or any(bound in name for bound in ("disintegrated", "counted rows", "test set")):
            assert _seen(counts, "with_more_examples"), (name, counts)


def _seen(counts: list[Count], broken: str) -> bool:
    """True if in some world, or in all of them together, the statement fails more often than it may with broken inputs."""
    violated, sets = sum(getattr(c, broken) for c in counts), sum(c.sets for c in counts)
    together = not holds(violated, sets, max(c.share for c in counts))
    return together or any(not holds(getattr(c, broken), c.sets, c.share) for c in counts)


def test_certified_errors_say_something() -> None:
    """Trained in earnest on enough data, each certified error is above the truth and well below chance."""
    world, values = World("learnable", 2000), []
    rules = CERTIFY.replace(draws=3, std_points=8, min_steps=600, min_epochs=1)
    for seed in range(4):
        prior = pactrain.Prior(std=0.5)
        found = pactrain.fit(linear(seed), world.rows(seed), bound="kl", prior=prior, preset=rules, seed=seed)
        stated = found.certificate.best("0-1 error")
        assert stated is not None
        assert stated.value > world.truth(found.posterior, seed)["0-1 error", RANDOMISED]
        values.append(stated.value)
    assert sum(values) / len(values) < 0.4
