"""The bound for unbounded losses on a small hand-made table, by plain loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from pactrain import Moment, PactrainError, Posterior, Prior
from pactrain.bounds import Unbounded
from tests.zoo import build

GAMMAS = [0.5, 1.0, 4.0, 9.0]
LOG_STDS = [-3.0, -1.0, 0.0]
PSI = [[0.002, 0.01, 0.20, 0.40], [0.02, 0.06, 0.90, 3.00], [0.03, 0.30, 5.00, 8.00]]
LOSSES = [0.7, 0.9, 1.6]
N = 80


def moment(stds: int = 3) -> Moment:
    """Two draws: of the second the moment is smaller, so that the average matters."""
    psi = np.array(PSI)[:stds]
    ones = np.ones((stds, 2))
    return Moment(
        log_stds=np.array(LOG_STDS)[:stds],
        gammas=np.array(GAMMAS),
        log_moments=np.stack([psi, 0.8 * psi], axis=1),
        means=np.array(LOSSES)[:stds, None] * ones,
        variances=0.1 * ones,
        errors=np.zeros((stds, 4)),
        negative=np.zeros((stds, 2, 2)),
        n=N,
        n_used=N,
        measured=2 * stds,
    )


def psi_of(average: str, stds: int = 3) -> list[list[float]]:
    """ψ[std, γ] of the table."""

    def one(p: float) -> float:
        if average == "max":
            return p
        m = N if average == "mfold" else 1
        return math.log((math.exp(m * p) + math.exp(m * 0.8 * p)) / 2) / m

    return [[one(p) for p in row] for row in PSI[:stds]]


def by_loops(
    kl: float, log_std: float, *, mode: str, average: str, n: int, nats: float, keep: slice = slice(None)
) -> tuple[float, float]:
    """(γ, complexity): linear in the log-std between the stds of the table, constant outside."""
    gammas, table = GAMMAS[keep], [row[keep] for row in psi_of(average)]
    if mode == "paper":
        table = [[max(p / g**2 for p, g in zip(row, gammas, strict=True))] for row in table]
    where = min(max(log_std, LOG_STDS[0]), LOG_STDS[-1])
    i = 0 if where <= -1 else 1
    share = (where - LOG_STDS[i]) / (LOG_STDS[i + 1] - LOG_STDS[i])
    row = [(1 - share) * a + share * b for a, b in zip(table[i], table[i + 1], strict=True)]
    if mode == "cgf":
        best = min(range(len(gammas)), key=lambda j: ((nats + kl) / n + row[j]) / gammas[j])
        return gammas[best], row[best] / gammas[best]
    gamma = min(max(math.sqrt((nats + kl) / n / row[0]), gammas[0]), gammas[-1])
    return gamma, gamma * row[0]


def searched(bound: Unbounded, kl: float, prior_log_std: torch.Tensor) -> tuple[float, float]:
    """γ and the complexity."""
    terms = bound.terms(0.3, kl, prior_log_std)
    return terms.gamma, terms.complexity


@pytest.mark.parametrize("average", ["mean", "mfold", "max"])
@pytest.mark.parametrize("mode", ["cgf", "paper"])
def test_value(mode: Any, average: Any) -> None:
    bound = Unbounded(50, 0.1, moment=moment(), mode=mode, average=average)
    for kl in (0.0, 3.0, 40.0, 2000.0):
        for log_std in (-9.0, -3.0, -2.2, -1.0, -0.4, 0.0, 2.0):
            gamma, complexity = by_loops(kl, log_std, mode=mode, average=average, n=50, nats=math.log(10))
            kl_term = (math.log(10) + kl) / (gamma * 50)
            total = 0.3 + kl_term + complexity
            found = bound.terms(0.3, kl, torch.tensor([-8.5, log_std], dtype=torch.float64).clamp(max=log_std))
            assert found == pytest.approx((total, gamma, kl_term, complexity), rel=1e-12)


def test_the_defaults() -> None:
    own = torch.tensor([-2.5, -1.5], dtype=torch.float64)
    gamma, complexity = by_loops(3.0, -1.5, mode="cgf", average="mfold", n=50, nats=math.log(20))
    assert searched(Unbounded(50, moment=moment()), 3.0, own) == pytest.approx((gamma, complexity), rel=1e-12)
    by_mean = by_loops(3.0, -2.0, mode="cgf", average="mfold", n=50, nats=math.log(20))
    assert searched(Unbounded(50, moment=moment(), at="mean"), 3.0, own) == pytest.approx(by_mean, rel=1e-12)
    given = by_loops(3.0, -1.5, mode="cgf", average="mfold", n=50, nats=7.0)
    bound = Unbounded(50, moment=moment(), nats=7.0)
    assert searched(bound, 3.0, own) == pytest.approx(given, rel=1e-12)
    assert bound.terms(0.3, 3.0, own).total == pytest.approx(0.3 + 10.0 / (given[0] * 50) + given[1], rel=1e-12)


@pytest.mark.parametrize("mode", ["cgf", "paper"])
def test_a_range_of_gamma(mode: Any) -> None:
    own = torch.tensor([-1.5], dtype=torch.float64)
    for kl in (0.0, 3000.0):
        bound = Unbounded(50, moment=moment(), mode=mode, gamma_min=1.0, gamma_max=4.0)
        wanted = by_loops(kl, -1.5, mode=mode, average="mfold", n=50, nats=math.log(20), keep=slice(1, 3))
        assert searched(bound, kl, own) == pytest.approx(wanted, rel=1e-12)


def test_a_table_with_one_std() -> None:
    bound = Unbounded(50, moment=moment(1))
    for log_std in (-5.0, 0.0):
        wanted = by_loops(3.0, -3.0, mode="cgf", average="mfold", n=50, nats=math.log(20))
        assert searched(bound, 3.0, torch.tensor([log_std])) == pytest.approx(wanted, rel=1e-12)


def test_between_two_stds_the_table_is_a_straight_line() -> None:
    bound = Unbounded(50, moment=moment(), gamma_max=0.5)
    psi = [row[0] for row in psi_of("mfold")]
    for log_std, slope in ((-3.0, (psi[1] - psi[0]) / 2), (-2.0, (psi[1] - psi[0]) / 2), (-0.5, psi[2] - psi[1])):
        own = torch.tensor([log_std], dtype=torch.float64, requires_grad=True)
        bound._read(own)[0].backward()
        assert own.grad is not None
        assert own.grad.item() == pytest.approx(slope, rel=1e-12)


def test_a_prior_that_is_not_a_number_does_not_look_like_one() -> None:
    own = torch.tensor([math.nan], dtype=torch.float64)
    assert math.isnan(Unbounded(50, moment=moment()).terms(0.3, 3.0, own).total)


def test_a_moment_of_zero_takes_the_largest_gamma() -> None:
    values = moment().to_dict()
    values["log_moments"] = np.zeros((3, 2, 4)).tolist()
    bound = Unbounded(50, moment=Moment.from_dict(values), mode="paper")
    assert searched(bound, 3.0, torch.tensor([-1.5])) == (9.0, 0.0)


@pytest.mark.parametrize("mode", ["cgf", "paper"])
def test_the_objective(mode: Any) -> None:
    q = Posterior(build("mlp"), Prior(std=0.1)).double()
    with torch.no_grad():
        q.log_std.sub_(0.4)
        q.prior_log_std.copy_(torch.linspace(-2.5, -1.5, len(q.prior_log_std)))
    found = Unbounded(50, moment=moment(), mode=mode)(torch.tensor([0.2, 0.6], dtype=torch.float64), q)
    kl = q.kl().item()
    gamma, complexity = by_loops(kl, -1.5, mode=mode, average="mfold", n=50, nats=math.log(20))
    assert [found.risk.item(), found.kl.item(), found.gamma] == pytest.approx([0.4, kl, gamma], rel=1e-12)
    assert found.complexity.item() == pytest.approx(complexity, rel=1e-12)
    assert found.total.item() == pytest.approx(0.4 + (math.log(20) + kl) / (gamma * 50) + complexity, rel=1e-12)


@pytest.mark.parametrize("mode", ["cgf", "paper"])
def test_at_the_start(mode: Any) -> None:
    found = Unbounded(50, moment=moment(), mode=mode).at_start().tolist()
    for i, row in enumerate(psi_of("mfold")):
        k = max(p / g**2 for p, g in zip(row, GAMMAS, strict=True))
        extra = [p / g if mode == "cgf" else g * k for p, g in zip(row, GAMMAS, strict=True)]
        best = min(math.log(20) / (g * 50) + e for g, e in zip(GAMMAS, extra, strict=True))
        assert found[i] == pytest.approx(LOSSES[i] + best, rel=1e-12)


def test_the_weight_of_the_divergence_is_that_of_the_gamma_that_is_held() -> None:
    bound = Unbounded(50, moment=moment())
    assert bound.holds_gamma
    assert bound.kl_weight(0.3, 3.0, held_gamma=4.0) == 1 / 200


def test_arguments_are_checked() -> None:
    good: dict[str, Any] = {"n": 1, "moment": moment()}
    fine: list[dict[str, Any]] = [{}, {"delta": 1e-12}, {"delta": 1 - 1e-12}, {"mode": "paper"}, {"at": "mean"}]
    for options in fine:
        Unbounded(**(good | options))
    wrong: list[dict[str, Any]] = [{"n": 0}, {"mode": "best"}, {"at": "min"}, {"gamma_min": 100.0}, {"gamma_max": 0.1}]
    for options in [*wrong, *({"delta": delta} for delta in (0.0, 1.0, -0.5, 1.5))]:
        with pytest.raises(PactrainError):
            Unbounded(**(good | options))
