"""Levels of a recursive certificate, measured against the same draws made by hand, and labels."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import Posterior, Prior
from pactrain.bounds.betting import Histogram
from pactrain.bounds.prior_price import priced_prior
from pactrain.bounds.recursive import read_levels
from pactrain.certification import recursive
from pactrain.certification.recursive import measure_level
from pactrain.problem.batches import TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.training.recursive import rebase
from tests.certification.small_posteriors import Product
from tests.oracle.formulas import kl_terms
from tests.zoo import build, rows

CE = LOSSES["cross_entropy"]


def flat(posterior: Posterior) -> Tensor:
    return torch.cat([p.detach().double().reshape(-1) for p in posterior.means()])


def moved(model: nn.Module) -> tuple[Posterior, Posterior]:
    """A posterior away from a prior that has a std for each weight; and that prior, as a posterior of its own."""
    before = Posterior(model.eval(), Prior(std=0.8))
    with torch.no_grad():
        before.log_std.add_(torch.linspace(-1, 0.5, before.num_weights))
    now = copy.deepcopy(before)
    rebase(now)
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in now.means():
            p.add_(2 * torch.randn(p.shape, generator=g))
        now.log_std.sub_(1.0)
    return before, now


@pytest.mark.parametrize("build_one", [Product, lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))])
def test_a_level_has_the_divergence_and_the_errors_of_both(build_one: Any) -> None:
    torch.manual_seed(3)
    before, now = moved(build_one())
    x = 3 * torch.randn(1500, 2, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, 2, (1500,), generator=torch.Generator().manual_seed(2))
    kept = [p.clone() for p in now.means()]
    level = measure_level(now, TensorBatches((x, y), 64), CE, False, 0)
    assert all(torch.equal(a, b) for a, b in zip(kept, now.means(), strict=True))
    own, prior = now.log_std.detach().double().numpy(), before.log_std.detach().double().numpy()
    assert level.kl == pytest.approx(kl_terms((flat(now) - flat(before)).numpy(), own, prior).sum(), rel=1e-5)
    assert (level.n, level.nats) == (1500, 0.0)

    def wrong(posterior: Posterior, draws: int) -> np.ndarray[Any, Any]:
        """For each example the share of draws that are wrong."""
        total = torch.zeros(len(y))
        for seed in range(draws):
            with posterior.sampled(torch.Generator().manual_seed(seed)) as model, torch.no_grad():
                total += model(x).argmax(1) != y
        return (total / draws).double().numpy()

    h, h_before = wrong(now, 600), wrong(before, 600)
    expected = [1 - (h_before * (1 - h)).mean(), h.mean(), (h * (1 - h_before)).mean()]
    found = [Histogram.read(level.bins, c) for c in level.counts]
    assert [f.mean * f.number / level.values for f in found] == pytest.approx(expected, abs=0.03)


def test_the_first_level_pays_for_its_prior() -> None:
    posterior = Posterior(build("mlp"))
    with torch.no_grad():
        posterior.log_std.sub_(0.5)
    x, y = rows(50)
    level = measure_level(posterior, TensorBatches((x, y), 64), CE, True, 0)
    prior = priced_prior(posterior)
    assert level.nats == prior.nats > 0
    assert level.kl == float(posterior.kl_by_group(prior.log_std).sum())
    assert len(level.counts) == 1


RUN: dict[str, Any] = {"certificate": "recursive", "budget": "4 epochs"}


def test_the_statement_takes_all_levels_and_the_whole_of_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursive, "DRAWS", 2000)
    result = pactrain.fit(build("mlp"), rows(1000), **RUN)
    (s,) = result.certificate.statements
    assert (s.bound, s.label, s.predictor) == ("recursive", "certified", "randomised predictor")
    levels = read_levels(s.inputs["levels"])
    assert [level.n for level in levels] == [1000, 969, 938, 875, 750, 500]
    assert s.inputs["delta_draws"] + s.inputs["delta_bound"] == pytest.approx(0.05)
    assert result.certificate.recheck()
    assert result.certificate.n == 1000


def test_networks_with_batchnorm_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursive, "DRAWS", 100)
    result = pactrain.fit(build("batchnorm"), rows(200), **RUN)
    assert {s.label for s in result.certificate.statements} == {"heuristic"}
    assert "BatchNorm" in str(result.certificate)


def test_copies_of_rows_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursive, "DRAWS", 100)
    x, y = rows(40)
    result = pactrain.fit(build("mlp"), (x.repeat(20, 1), y.repeat(20)), **RUN)
    assert {s.label for s in result.certificate.statements} == {"heuristic"}
    assert "rows are copies of others" in str(result.certificate)
