"""The bound for unbounded losses: γ, its terms, its gradient, where it reads the table."""

import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

import pactrain
from pactrain import Moment, PactrainError, Posterior, Prior
from pactrain.bounds import Unbounded
from pactrain.bounds.unbounded import Mode
from pactrain.rules.presets import PAPER
from tests.zoo import build, rows

N = 500


def moment(gammas: Any = None) -> Moment:
    """A made-up scan with a smooth table: ψ = std · γ² / (1 + γ)."""
    gammas = np.asarray(gammas if gammas is not None else np.exp(np.linspace(math.log(0.5), math.log(50), 400)))
    log_stds = np.linspace(-4, 0, 9)
    psi = np.exp(log_stds)[:, None] * gammas**2 / (1 + gammas)
    table = psi[:, None, :]
    ones = np.ones((len(log_stds), 1))
    return Moment(
        log_stds,
        gammas,
        table,
        2.3 * ones,
        0.1 * ones,
        np.zeros((len(log_stds), len(gammas))),
        np.zeros((len(log_stds), 1, 2)),
        N,
        N,
        len(log_stds),
    )


def posterior() -> Posterior:
    """A posterior away from its prior, float64."""
    torch.manual_seed(0)
    out = Posterior(build("mlp"), Prior(std=0.1)).double()
    with torch.no_grad():
        for p in out.means():
            p.add_(0.05 * torch.randn_like(p))
        out.log_std.sub_(0.4)
        out.prior_log_std[1] += 0.3
    return out


def psi_at(log_std: float, gamma: float) -> float:
    """The made-up ψ, interpolated linearly in log-std as the table is."""
    grid = np.linspace(-4, 0, 9)
    return float(np.interp(log_std, grid, np.exp(grid)) * gamma**2 / (1 + gamma))


def test_cgf_gamma_is_the_numerical_minimiser() -> None:
    bound, q = Unbounded(N, moment=moment()), posterior()
    objective = bound(torch.tensor([1.0, 2.0]), q)
    kl, log_std = objective.kl.item(), q.prior_log_std.max().item()

    def value(log_gamma: float) -> float:
        g = math.exp(log_gamma)
        return (math.log(20) + kl) / (g * N) + psi_at(log_std, g) / g

    best = minimize_scalar(value, bounds=(math.log(0.5), math.log(50)), method="bounded")
    assert objective.gamma == pytest.approx(math.exp(best.x), rel=0.03)
    assert objective.total.item() == pytest.approx(1.5 + best.fun, rel=1e-4)
    assert objective.total.item() >= 1.5 + best.fun - 1e-12
    parts = 1.5 + (math.log(20) + kl) / (objective.gamma * N) + objective.complexity.item()
    assert objective.total.item() == pytest.approx(parts, rel=1e-12)


def test_paper_gamma_is_the_numerical_minimiser_and_is_clipped() -> None:
    bound, q = Unbounded(N, moment=moment(), mode="paper", average="mean"), posterior()
    objective = bound(torch.tensor([1.0]), q)
    kl = objective.kl.item()
    k = float(np.interp(q.prior_log_std.max().item(), moment().log_stds, moment().k("mean")))
    best = minimize_scalar(lambda g: (math.log(20) + kl) / (g * N) + g * k, bounds=(0.5, 50), method="bounded")
    assert objective.gamma == pytest.approx(best.x, rel=1e-3)
    assert objective.total.item() == pytest.approx(1 + best.fun, rel=1e-6)
    few = Unbounded(2, moment=moment(), mode="paper", gamma_max=3.0)(torch.tensor([1.0]), q)
    assert few.gamma == pytest.approx(3.0, rel=0.05)
    many = Unbounded(10**9, moment=moment(), mode="paper")(torch.tensor([1.0]), q)
    assert many.gamma == pytest.approx(0.5)


def test_the_paper_form_is_never_below_the_cgf_form() -> None:
    q = posterior()
    for n in (10, 500, 50_000):
        values = [Unbounded(n, moment=moment(), mode=m)(torch.ones(3), q).total.item() for m in ("cgf", "paper")]
        assert values[0] <= values[1] + 1e-4


@pytest.mark.parametrize("mode", ["cgf", "paper"])
def test_envelope_gradient_equals_the_gradient_through_gamma(mode: Any) -> None:
    bound, q = Unbounded(N, moment=moment(), mode=mode, average="mean"), posterior()
    bound(torch.ones(3, dtype=torch.float64), q).total.backward()
    step = 1e-5
    for parameter, index in ((q.log_std, 3), (q.prior_log_std, 0), (q.prior_log_std, 1)):
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter[index] += sign * step
                ends.append(bound(torch.ones(3, dtype=torch.float64), q).total.item())  # γ is chosen anew here
                parameter[index] -= sign * step
        assert parameter.grad is not None
        numerical = (ends[0] - ends[1]) / (2 * step)
        assert parameter.grad[index].item() == pytest.approx(numerical, rel=2e-3, abs=1e-9)


def test_value_agrees_with_the_objective_and_grows_with_kl_and_risk() -> None:
    bound, q = Unbounded(N, moment=moment()), posterior()
    objective = bound(torch.ones(2), q)
    total, gamma, kl_term, complexity = bound.terms(1.0, objective.kl.item(), q.prior_log_std)
    assert total == pytest.approx(objective.total.item(), rel=1e-9)
    assert gamma == objective.gamma
    assert complexity == pytest.approx(objective.complexity.item())
    assert total == pytest.approx(1.0 + kl_term + complexity)
    assert bound.terms(1.0, 2000.0, q.prior_log_std).total > bound.terms(1.0, 1000.0, q.prior_log_std).total > 1.0
    assert bound.terms(1.1, 1000.0, q.prior_log_std).total > bound.terms(1.0, 1000.0, q.prior_log_std).total


def test_where_a_layerwise_prior_reads_the_table() -> None:
    q = posterior()
    low, high = q.prior_log_std.min().item(), q.prior_log_std.max().item()
    at_max, at_mean = (Unbounded(N, moment=moment(), at=at) for at in ("max", "mean"))
    row = lambda b: b._read(q.prior_log_std)[0].item() / 0.5**2 * 1.5  # noqa: E731
    assert row(at_max) == pytest.approx(psi_at(high, 0.5) / 0.5**2 * 1.5)
    assert row(at_mean) == pytest.approx(psi_at((low + high) / 2, 0.5) / 0.5**2 * 1.5)
    outside = torch.tensor([5.0], dtype=torch.float64)
    assert at_max._read(outside)[0].item() == pytest.approx(psi_at(0.0, 0.5))


def test_bound_at_start_is_the_bound_with_no_divergence() -> None:
    for mode in get_args(Mode):
        bound = Unbounded(N, moment=moment(), mode=mode)
        for i, log_std in enumerate(bound.log_stds):
            direct = bound.terms(2.3, 0.0, log_std[None]).total
            assert bound.at_start()[i].item() == pytest.approx(direct, rel=1e-3)


def test_arguments_are_checked() -> None:
    for options in ({"n": 0}, {"delta": 0.0}, {"delta": 1.0}, {"mode": "best"}, {"at": "min"}, {"gamma_min": 100.0}):
        with pytest.raises(PactrainError):
            Unbounded(**({"n": 5, "moment": moment()} | options))  # type: ignore[arg-type]


def test_low_level_loop_learns() -> None:
    import pactrain

    x, y = rows(200)
    q = Posterior(build("mlp"))
    scan = pactrain.estimate_moment(q, (x, y), draws=3)
    bound = pactrain.bounds.Unbounded(n=200, delta=0.05, moment=scan)
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-2)
    first = last = math.nan
    for _ in range(150):
        losses = torch.nn.functional.cross_entropy(q(x), y, reduction="none")
        objective = bound(losses, q)
        optimizer.zero_grad()
        objective.total.backward()
        optimizer.step()
        last = objective.total.item()
        first = last if math.isnan(first) else first
    assert last < 0.8 * first


@pytest.mark.parametrize("mode", ["paper", "cgf"])
def test_a_layerwise_prior_reads_the_table_at_its_largest_std_or_at_the_geometric_mean(mode: Any) -> None:
    posterior = Posterior(build("mlp"), pactrain.Prior(per="layer"))
    x = torch.randn(30, 6, generator=torch.Generator().manual_seed(0))
    moment = pactrain.estimate_moment(posterior, (x, torch.arange(30) % 3), draws=2)
    groups = len(posterior.groups)
    log_stds = torch.linspace(-3.0, 0.0, groups)
    found = {}
    for at in ("max", "mean"):
        bound = PAPER.replace(at=at, mode=mode).bound(30, 0.05, moment, groups)
        one = log_stds.max() if at == "max" else log_stds.mean()
        found[at] = bound.terms(0.5, 10.0, log_stds)
        assert found[at] == pytest.approx(bound.terms(0.5, 10.0, one.reshape(1)))
    assert found["max"][0] > found["mean"][0]
