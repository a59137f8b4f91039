"""Coverage of every formula by simulation, where the true risk is known: a bound may fail in at most δ of the data sets.

All values come from the product.  What there is to simulate is read off the product too: a bound, a formula of certificates
or a public function of `pactrain.bounds` that is neither in `simulations.py` nor listed here with a reason fails the last tests.
"""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import pactrain.bounds
from pactrain.bounds import Bound, Unbounded
from pactrain.bounds.bernstein import bernstein_bound, bernstein_square
from pactrain.bounds.betting import Histogram, mean_bound
from pactrain.bounds.moment import Average
from pactrain.bounds.prior_price import step_price
from pactrain.certification.statement import FORMULAS
from tests.statistics.simulations import DELTA, SETS, SIMULATIONS, Array, at, holds, moment, name_of, unbounded

HEURISTIC = {
    "bbb.BBB": "an objective; it charges nothing for confidence",
    "statement: training objective": "what was minimised: the prior was learned and is not paid for",
    "statement: training objective + η": "the paper's correction, whose proof has gaps",
    "eta.eta_paper": "the paper's correction, whose proof has gaps",
}

PARTS = {
    "kl.binary_kl": "a divergence, inverted by kl_inverse",
    "bernstein.bernstein_square": "a constant of bernstein_bound",
    "progressive.blocks_text": "writes numbers as text",
    "progressive.read_blocks": "reads them back",
    "recursive.read_levels": "reads numbers from a text",
    "prior_price.step_price": "a price in nats; the sum over all steps is tested below",
    "prior_price.priced_prior": "a price in nats, and the prior that it pays for",
    "moment.gammas_between": "picks points of a grid",
    "moment.log_grid": "makes a grid",
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_bounds_hold_and_break_with_a_broken_input(name: str) -> None:
    simulation = SIMULATIONS[name]
    risks = simulation.risks()
    assert holds(at(risks, simulation.value), simulation.truth)
    assert not holds(at(risks, simulation.broken), simulation.truth)


@pytest.mark.parametrize("spread", [0.3, 20.0])
def test_betting_holds_for_means_of_chunks_and_breaks_when_they_are_counted_often(spread: float) -> None:
    """Chunks whose risks differ, rounded up as a certificate does it; the truth is the average risk."""
    truth, draws, sets = 0.07, 40, 1200
    chunks = np.random.default_rng(5).beta(spread, spread * (1 - truth) / truth, (sets, draws))
    counts = [dict(zip(*np.unique(row, return_counts=True), strict=True)) for row in np.ceil(50 * chunks).astype(int)]

    def bounds(times: int) -> Array:
        many = [Histogram(50, {int(i): times * int(c) for i, c in found.items()}) for found in counts]
        return np.array([mean_bound(found, DELTA) for found in many])

    assert holds(bounds(1), truth)
    assert not holds(bounds(100) - 0.5 / 50, truth)  # without what rounding up adds in the mean


def test_smoothed_losses_are_covered() -> None:
    """The unexpected Bernstein bound of a loss with a long tail, at one network that the rows had no part in."""
    n, u, limit = 400, 0.25, 6.0
    losses = np.minimum(np.random.default_rng(7).exponential(0.4, (SETS, n)), limit)
    truth = 0.4 * (1 - math.exp(-limit / 0.4))
    x = losses / limit
    means = ((x + bernstein_square(u) * x**2) / (1 + bernstein_square(u))).mean(axis=1)
    assert holds(np.array([bernstein_bound(m, 0.0, n, DELTA, limit=limit, u=u) for m in means]), truth)
    unpaid = [
        bernstein_bound(m, 0.0, 20 * n, DELTA, limit=limit, u=u) for m in x.mean(axis=1) / (1 + bernstein_square(u))
    ]
    assert not holds(np.array(unpaid), truth)  # without the square, and with every row counted twenty times


@pytest.mark.parametrize(("rare", "scale", "n"), [(1e-4, 1.0, 10_000), (1e-6, 2.3, 50_000)])
def test_the_papers_moment_breaks_the_bound_and_the_n_fold_moment_does_not(rare: float, scale: float, n: int) -> None:
    """A prior that puts `rare` on a loss scale·Bernoulli(½) and the rest on a loss of 0; Q is the rare hypothesis."""
    gamma, delta = 0.5, 0.05
    networks = np.zeros((1, round(1 / rare), 1))  # the prior, network by network
    networks[0, 0, 0] = math.log(math.cosh(gamma * scale / 2))
    table = moment(np.array([gamma]), networks, n)
    risks = scale * np.random.default_rng(6).binomial(n, 0.5, SETS) / n

    def values(average: Average) -> Array:
        bound = Unbounded(n, delta, moment=table, average=average)
        return at(risks, lambda r: unbounded(r, -math.log(rare), bound))

    assert float((values("mean") < scale / 2).mean()) == pytest.approx(0.31 if scale == 1 else 0.43, abs=0.04)
    assert not holds(values("mean"), scale / 2, delta)
    assert holds(values("mfold"), scale / 2, delta)
    assert holds(values("max"), scale / 2, delta)


def test_the_prices_of_prior_scales_add_up() -> None:
    """Choosing among hypotheses costs −ln of a weight, and the weights of all steps are at most one together."""
    for r in (0, 3, 12):
        weights = [math.exp(-step_price(k, r)) for k in range(-(10**5), 10**5 + 1)]
        assert 1 - 2 * 2**r / math.pi / 10**5 - 1e-9 < math.fsum(weights) <= 1


# -- nothing is left out -----------------------------------------------------------------------------------------------


def own(kind: Callable[[object], bool]) -> Iterator[Callable[..., object]]:
    """Public members of this kind that the modules of `pactrain.bounds` define."""
    for module in pkgutil.iter_modules(pactrain.bounds.__path__, "pactrain.bounds."):
        for name, thing in inspect.getmembers(importlib.import_module(module.name), kind):
            if thing.__module__ == module.name and not name.startswith("_"):
                yield thing


def bounds(kind: type[Bound] = Bound) -> Iterator[type[Bound]]:
    """The product's bounds that can be used, wherever they are defined."""
    for child in kind.__subclasses__():
        if child.__module__.startswith("pactrain.") and not inspect.isabstract(child):
            yield child
        yield from bounds(child)


def catalogue() -> set[str]:
    """All that gives a value: bounds wherever they are defined, public functions, and formulas of certificates."""
    things: list[Callable[..., object]] = [*bounds(), *own(inspect.isfunction)]
    things += [c for c in own(inspect.isclass) if hasattr(c, "value") and not inspect.isabstract(c)]
    return {name_of(thing) for thing in things} | {f"statement: {name}" for name in FORMULAS}


def test_everything_is_simulated_or_has_a_reason() -> None:
    simulated = {s.of for s in SIMULATIONS.values()}
    assert catalogue() == simulated | set(HEURISTIC) | set(PARTS)
    assert not simulated & (set(HEURISTIC) | set(PARTS))


def test_what_certifies_is_simulated() -> None:
    simulated = {s.of for s in SIMULATIONS.values()}
    assert {name_of(bound) for bound in bounds() if bound.certifies} <= simulated
