"""The certificate: its formulas, its record, its words."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pactrain import Certificate, PactrainError, Posterior, Prior, certify
from pactrain.bounds.kl import binary_kl, kl_bound, kl_inverse, monte_carlo
from pactrain.bounds.prior_price import PRIOR_GRID, round_prior
from pactrain.certification.statement import RANDOMISED, Caveat, statement
from pactrain.distributions.posterior import Snapshot
from tests.zoo import build, rows


def test_reference_values() -> None:
    assert kl_inverse(0.02, 0.01) == pytest.approx(0.04652, abs=5e-6)
    assert kl_bound(0.02, 5000, 50000, 0.025) == pytest.approx(0.151003, abs=5e-7)
    assert kl_bound(0.2, 500, 10000, 0.05) == pytest.approx(0.344834, abs=5e-7)
    assert kl_bound(0.0005, 20, 1000, 0.05) == pytest.approx(0.029256, abs=5e-7)
    assert kl_inverse(0, 0.3) == pytest.approx(1 - math.exp(-0.3), abs=1e-12)
    assert kl_inverse(1, 0.1) == 1
    assert kl_inverse(0.3, math.inf) == 1
    for q, c in ((-0.1, 1.0), (1.1, 1.0), (0.5, -1.0), (0.5, math.nan)):
        with pytest.raises(ValueError, match="kl_inverse"):
            kl_inverse(q, c)
    with pytest.raises(ValueError, match="binary_kl"):
        binary_kl(2, 0.5)


@given(st.floats(0, 1), st.floats(0, 20))
def test_kl_inverse_is_an_upper_inverse(q: float, c: float) -> None:
    p = kl_inverse(q, c)
    assert q <= p <= 1
    assert p == 1 or binary_kl(q, p) >= c * (1 - 1e-9) - 1e-14
    assert kl_inverse(q, c + 0.5) >= p


def trained() -> Posterior:
    """A posterior a little away from its prior."""
    posterior = Posterior(build("mlp"), Prior(std=0.05))
    with torch.no_grad():
        posterior.log_std.sub_(0.2)
        posterior.prior_log_std.add_(0.033)
    return posterior


def learned() -> tuple[Posterior, tuple[torch.Tensor, torch.Tensor]]:
    """A posterior over a network that tells two classes apart, around a prior of fixed std that cost little to leave."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 2, generator=g)
    y = (x[:, 0] > 0).long()
    model = torch.nn.Linear(2, 2)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.zero_()
        posterior = Posterior(model, Prior(std=0.3, learn=False))
        model.weight[:, 0] = torch.tensor([-1.0, 1.0])
    return posterior, (x, y)


def test_a_certificate_says_what_was_measured() -> None:
    posterior = trained()
    certificate = certify(posterior, rows(400), delta=0.1, draws=30, seed=4)
    grid = next(s for s in certificate.statements if s.quantity == "0-1 error" and s.prior == "prior grid")
    assert grid.vacuous
    assert grid.label == "heuristic"
    each = 0.1 / 6
    assert certificate.budget == pytest.approx(dict.fromkeys(certificate.budget, each))
    assert len(certificate.budget) == 6
    assert grid.inputs["n"] == 400
    assert grid.inputs["values"] == 400  # a draw for each example
    assert grid.inputs["prior_nats"] == pytest.approx(2 * math.log(1401))
    rounded, _ = round_prior(posterior)
    assert grid.inputs["kl"] == pytest.approx(float(posterior.kl_by_group(rounded).sum()))
    assert grid.inputs["delta_draws"] + grid.inputs["delta_bound"] == pytest.approx(each)
    measured = monte_carlo(grid.inputs["mean"], 400, 0.2 * each)
    wanted = kl_bound(measured, grid.inputs["kl"] + 2 * math.log(1401), 400, 0.8 * each)
    assert grid.value == pytest.approx(wanted, rel=1e-12)
    forms = {s.bound: s for s in certificate.statements if s.bound.startswith("unbounded")}
    assert forms["unbounded (cgf)"].value <= forms["unbounded (paper)"].value
    assert forms["unbounded (cgf)"].value > forms["unbounded (cgf)"].inputs["risk"]
    low, high = certificate.measured["psi_interval"]
    inputs = forms["unbounded (cgf)"].inputs
    assert low <= inputs["complexity"] * inputs["gamma"] <= high
    assert certificate.recheck()
    assert certify(posterior, rows(400), delta=0.1, draws=30, seed=4) == certificate
    assert "Nothing useful follows from the 400 training examples about the 0-1 error (bound " in str(certificate)


def test_the_events_of_a_certificate_share_one_delta() -> None:
    certificate = certify(trained(), rows(100), test=rows(50, seed=3), delta=0.07, draws=5)
    assert sum(certificate.budget.values()) == pytest.approx(0.07)
    deltas: dict[tuple[str, str, str], float] = {}
    for s in certificate.statements:
        spent = (
            s.inputs.get("delta_draws", 0)
            + s.inputs.get("delta_bound", 0)
            + math.exp(-s.inputs.get("confidence_nats", 99))
        )
        deltas[s.quantity, s.predictor, s.prior if "unbounded" not in s.bound else "one event"] = spent
    assert sum(deltas.values()) == pytest.approx(0.07, rel=1e-6)
    mean = certificate.best("0-1 error", "mean network")
    assert mean is not None
    assert mean.inputs["n"] == 50


def test_test_rows_among_the_training_rows_are_noticed() -> None:
    x, y = rows(100)
    certificate = certify(trained(), (x, y), test=(x[:7], y[:7]), draws=5)
    mean = certificate.best("0-1 error", "mean network")
    assert mean is not None
    assert mean.label == "heuristic"
    assert any("7 test rows" in note for note in certificate.notes)


def test_earlier_moments_are_stated_and_the_posterior_is_left_as_it_was() -> None:
    posterior = trained()
    before = posterior.snapshot()
    wide = Snapshot(before.means, before.log_std + 0.1, before.prior_log_std)
    certificate = certify(posterior, rows(100), draws=5, earlier={"end of stage 1": wide})
    assert torch.equal(posterior.log_std, before.log_std)
    kl = {s.when: s.inputs["kl"] for s in certificate.statements if s.bound == "kl" and s.prior == "prior grid"}
    assert kl["end of stage 1"] != kl["end of training"]


def test_the_prior_is_rounded_to_the_grid_it_is_charged_for() -> None:
    posterior = trained()
    with torch.no_grad():
        posterior.prior_log_std.copy_(torch.tensor([-2.9476, 7.0]))
    rounded, nats = round_prior(posterior)
    assert rounded.tolist() == pytest.approx([-2.95, 1.0])
    assert nats == pytest.approx(2 * math.log(len(PRIOR_GRID)))


def test_caveats_take_the_label_away() -> None:
    posterior, data = learned()
    assert {s.label for s in certify(posterior, data, draws=3).statements if s.bound == "kl"} == {"certified"}
    doubts = [Caveat("a", "estimated"), Caveat("b", "certified")]
    mild = certify(posterior, data, draws=3, caveats=doubts)
    assert {s.label for s in mild.statements if s.bound == "kl"} == {"estimated"}
    certificate = certify(posterior, data, draws=3, caveats=[*doubts, "the rows are not independent"])
    assert {s.label for s in certificate.statements} == {"heuristic"}
    lines = str(certificate).splitlines()
    assert lines[:4] == [
        "Nothing is claimed about this network on new data.",
        "Only estimated: a.",
        "Note: b.",
        "Not certified: the rows are not independent.",
    ]
    norm = certify(Posterior(build("batchnorm")), rows(), draws=3)
    assert "certified" not in {s.label for s in norm.statements}
    assert "to_group_norm" in str(norm)


def test_a_vacuous_value_is_called_vacuous() -> None:
    inputs = {
        "mean": 0.1,
        "values": 9,
        "delta_draws": 0.01,
        "kl": 1e6,
        "prior_nats": 1,
        "n": 50,
        "delta_bound": 0.04,
        "scale": 1,
    }
    empty = statement("0-1 error", RANDOMISED, "certified", "kl", inputs, constant_answer=0.4)
    assert empty.vacuous
    assert empty.label == "heuristic"
    certificate = dataclasses.replace(certify(trained(), rows(), draws=3), statements=(empty,), digest="")
    assert "(bound 1; a constant answer has 0.4)" in str(certificate)
    small = statement("0-1 error", RANDOMISED, "certified", "kl", inputs | {"kl": 0, "n": 10**6}, constant_answer=0.999)
    assert not small.vacuous
    assert small.label == "certified"


def test_json_round_trip_and_tampering(tmp_path: Path) -> None:
    certificate = certify(trained(), rows(), draws=3)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate.to_dict()))
    assert Certificate.read(path) == certificate
    for key in ("value", "kl"):
        edited = certificate.to_dict()
        if key == "value":
            edited["statements"][0]["value"] *= 0.999
        else:
            edited["statements"][0]["inputs"]["kl"] -= 1e-3
        assert not Certificate.from_dict(edited).recheck()
    bare = certificate.to_dict() | {"notes": [], "digest": ""}
    with pytest.raises(PactrainError, match="no digest"):
        Certificate.from_dict(bare)
    for text in ("{", "[]", '{"format": 99}', '{"format": 3}', '{"statements": [], "format": 3, "digest": "x"}'):
        path.write_text(text)
        with pytest.raises(PactrainError):
            Certificate.read(path)


def test_a_certificate_is_rechecked_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certify(trained(), rows(), draws=3).to_dict()))
    code = (
        "import sys; from pactrain.certification.certificate import Certificate\n"
        f"assert Certificate.read({str(path)!r}).recheck()\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bad_arguments() -> None:
    with pytest.raises(PactrainError, match="delta"):
        certify(trained(), rows(), delta=0)
    with pytest.raises(PactrainError, match="draws"):
        certify(trained(), rows(), draws=0)
