"""The certificate: what it says, its record, its words."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pactrain import Certificate, PactrainError, certify
from pactrain.bounds.betting import Histogram, mean_bound
from pactrain.bounds.kl import kl_bound
from pactrain.bounds.prior_price import priced_prior
from pactrain.certification.certify import Background
from pactrain.certification.statement import RANDOMISED, statement
from pactrain.distributions.posterior import Snapshot
from tests.certification.small_posteriors import trained
from tests.zoo import rows


def test_a_certificate_says_what_was_measured() -> None:
    posterior = trained()
    certificate = certify(posterior, rows(400), delta=0.1, draws=30, seed=4)
    error = next(s for s in certificate.statements if (s.quantity, s.bound) == ("0-1 error", "kl"))
    assert error.vacuous
    assert (error.label, error.prior) == ("heuristic", "dyadic steps")
    each = 0.1 / 3
    assert certificate.budget == pytest.approx(dict.fromkeys(("0-1 error", "cross-entropy", "one drawn network"), each))
    assert error.inputs["n"] == 400
    assert error.inputs["values"] == 400  # a draw for each example
    prior = priced_prior(posterior)
    assert error.inputs["prior_nats"] == pytest.approx(prior.nats)
    assert error.inputs["kl"] == pytest.approx(float(posterior.kl_by_group(prior.log_std).sum()))
    assert error.inputs["delta_draws"] + error.inputs["delta_bound"] == pytest.approx(each)
    measured = mean_bound(Histogram.read(1, error.inputs["counts"]), 0.2 * each)
    wanted = kl_bound(measured, error.inputs["kl"] + prior.nats, 400, 0.8 * each)
    assert error.value == pytest.approx(wanted, rel=1e-12)
    assert certificate.recheck()
    assert certify(posterior, rows(400), delta=0.1, draws=30, seed=4) == certificate
    assert "From the 400 training rows alone nothing useful can be proved." in str(certificate)


def test_the_unbounded_loss_is_estimated_in_two_forms() -> None:
    x, y = rows(400)
    certificate = certify(trained(), (x, y), loss="hinge", draws=30)
    forms = {s.bound: s for s in certificate.statements if s.bound.startswith("unbounded")}
    assert forms["unbounded (cgf)"].value <= forms["unbounded (paper)"].value
    assert forms["unbounded (cgf)"].value > forms["unbounded (cgf)"].inputs["risk"]
    low, high = certificate.measured["psi_interval"]
    inputs = forms["unbounded (cgf)"].inputs
    assert low <= inputs["complexity"] * inputs["gamma"] <= high
    assert inputs["confidence_nats"] == pytest.approx(
        math.log(20)
    )  # it is not proved, and takes nothing of δ from others


def test_the_events_of_a_certificate_share_one_delta() -> None:
    certificate = certify(trained(), rows(100), test=rows(50, seed=3), delta=0.07, draws=5)
    assert sum(certificate.budget.values()) == pytest.approx(0.07)
    spent = [s.inputs.get("delta_draws", 0) + s.inputs["delta_bound"] for s in certificate.statements]
    assert sum(spent) == pytest.approx(0.07)
    mean = certificate.best("0-1 error", "mean network")
    assert mean is not None
    assert mean.inputs["n"] == 50


def test_earlier_moments_are_stated_and_the_posterior_is_left_as_it_was() -> None:
    posterior = trained()
    before = posterior.snapshot()
    wide = Snapshot(before.means, before.log_std + 0.1, before.prior_log_std)
    certificate = certify(posterior, rows(100), draws=5, background=Background(earlier={"end of stage 1": wide}))
    assert torch.equal(posterior.log_std, before.log_std)
    kl = {s.when: s.inputs["kl"] for s in certificate.statements if s.bound == "kl"}
    assert kl["end of stage 1"] != kl["end of training"]


def test_a_vacuous_value_is_called_vacuous() -> None:
    inputs = {
        "bins": 1,
        "counts": "0:9 1:1",
        "values": 10,
        "choices": 1,
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
    assert "nothing useful can be proved" in str(certificate)
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
    for text in ("{", "[]", '{"format": 99}', '{"format": 4}', '{"statements": [], "format": 4, "digest": "x"}'):
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
