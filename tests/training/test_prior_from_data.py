"""Priors that cost nothing: fixed in advance, or learned from rows that the bound does not count."""

from typing import Any

import pytest
import torch

import pactrain
from pactrain import PactrainError
from pactrain.problem.batches import TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read import Problem, set_aside
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Event
from tests.zoo import ZOO, build, rows


def test_a_prior_trained_on_one_part_is_charged_on_the_other() -> None:
    data = rows(400)
    result = pactrain.fit(build("mlp"), data, bound="kl", prior_data=0.5, budget="200 epochs")
    assert result.certificate.n == 200
    stated = result.certificate.best("0-1 error", label="certified")
    assert stated is not None
    assert stated.value < 0.5
    x, y = data
    doubled = (torch.cat([x, x]), torch.cat([y, y]))
    leaky = pactrain.fit(build("mlp"), doubled, bound="kl", prior_data=0.5, budget="2 epochs").certificate
    assert "certified" not in {s.label for s in leaky.statements}
    assert any("both in the prior's part" in c.reason for c in leaky.caveats)
    for bad in (-0.1, 1.0):
        with pytest.raises(PactrainError, match="prior_data"):
            pactrain.fit(build("mlp"), data, prior_data=bad)
    with pytest.raises(DataError, match="rows can be told apart"):
        pactrain.fit(build("keywords"), ZOO["keywords"][1](), prior_data=0.5)


def test_a_prior_fixed_in_advance_stays_and_costs_nothing() -> None:
    prior = pactrain.Prior(std=0.1, learn=False)
    for preset in ("auto", "authors"):
        result = pactrain.fit(build("mlp"), rows(200), prior=prior, preset=preset, budget="5 epochs")
        assert list(result.posterior.prior_std().values()) == pytest.approx([0.1] * len(result.posterior.groups))
        stated = [s for s in result.certificate.statements if s.bound == "kl" and s.quantity == "0-1 error"]
        assert {(s.prior, s.inputs["prior_nats"]) for s in stated} == {("fixed in advance", 0.0)}
        assert stated[0].inputs["kl"] == pytest.approx(float(result.posterior.kl_by_group().sum()))
    with pytest.raises(PactrainError, match="needs its std"):
        pactrain.Prior(learn=False)


def test_the_priors_std_does_not_depend_on_the_rows_that_are_counted() -> None:
    x, y = rows(200)
    loss = LOSSES["cross_entropy"]
    parts = set_aside(Problem(TensorBatches((x, y), 64), None, (x, y), loss, loss), 0.5, seed=0)
    first, rest = parts.prior_rows, parts.batches
    assert first is not None
    assert isinstance(rest, TensorBatches)
    counted = (x[:, None] == rest.tensors[0][None]).all(-1).any(1)
    assert int(counted.sum()) == len(rest) == len(first) == 100
    changed = torch.where(counted, 2 - y, y)
    runs = [pactrain.fit(build("mlp"), (x, z), prior_data=0.5, budget="4 epochs") for z in (y, changed)]
    assert torch.equal(runs[0].posterior.prior_mean, runs[1].posterior.prior_mean)
    assert torch.equal(runs[0].posterior.prior_log_std, runs[1].posterior.prior_log_std)
    assert not torch.equal(runs[0].posterior.mean_shift(), runs[1].posterior.mean_shift())


def test_a_learned_prior_is_never_free(tmp_path: Any) -> None:
    result = pactrain.fit(build("mlp"), rows(200), budget="3 epochs")
    result.posterior.requires_grad_(False)
    certificate = pactrain.certify(result.posterior, rows(200), draws=20)
    assert "fixed in advance" not in {s.prior for s in certificate.statements}

    def broken(event: Event) -> None:
        if event.phase == "train" and event.done == 2:
            raise RuntimeError("no more")

    fixed = pactrain.Prior(std=0.05, learn=False)
    model = build("mlp")
    with pytest.raises(RuntimeError, match="no more"):
        pactrain.fit(model, rows(200), out=tmp_path / "run", callbacks=[broken], budget="4 epochs")
    with pytest.raises(PactrainError, match="other settings"):
        pactrain.fit(build("mlp"), rows(200), prior=fixed, out=tmp_path / "run", resume=True, budget="4 epochs")
    again = pactrain.fit(model, rows(200), budget="2 epochs").certificate  # its weights have seen the data
    assert "certified" not in {s.label for s in again.statements}
