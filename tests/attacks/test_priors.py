"""A prior that has seen the counted rows makes every bound around it void; nothing in the weights says so."""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pactrain import Certificate, Posterior, Prior, certify, fit, load
from pactrain.runtime.events import Event
from tests.attacks.networks import NOTHING, coin_flips, headline, labels_of, memorise, network, separable

ROOT = Path(__file__).parents[2]

FIXED = Prior(std=0.003, learn=False)


def by_state_dict(trained: nn.Module, tmp_path: Path) -> nn.Module:
    fresh = network(seed=1)
    fresh.load_state_dict(trained.state_dict())
    return fresh


def by_deepcopy(trained: nn.Module, tmp_path: Path) -> nn.Module:
    return copy.deepcopy(trained)


def by_another_process(_: nn.Module, tmp_path: Path) -> nn.Module:
    code = (
        "import sys, torch; from tests.attacks.networks import *\n"
        "torch.save(memorise(network(), coin_flips()).state_dict(), sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "weights.pt")], check=True, cwd=ROOT)
    fresh = network(seed=1)
    fresh.load_state_dict(torch.load(tmp_path / "weights.pt"))
    return fresh


WAYS = [by_state_dict, by_deepcopy, by_another_process]


def assert_refused(certificate: Certificate, *advice: str) -> None:
    assert labels_of(certificate) == {"heuristic"}
    assert headline(certificate) == NOTHING
    reason = next(c.reason for c in certificate.caveats if "than chance allows" in c.reason)
    assert all(word in reason for word in ("100.0 % correct", "Prior(source=", *advice))
    assert reason in str(certificate)
    small = [s for s in certificate.statements if s.bound in ("kl", "disintegrated") and s.quantity == "0-1 error"]
    assert min(s.value for s in small) < 0.1  # the number that would have been certified; the truth is 0.5


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    return memorise(network(), coin_flips())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_weights_that_know_the_rows_certify_nothing(way, trained: nn.Module, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    result = fit(way(trained, tmp_path), coin_flips(), bound="kl", prior=FIXED, budget="3 epochs")
    assert_refused(result.certificate, "use prior_data")


@pytest.mark.parametrize(
    "options", [{"certificate": "progressive"}, {"prior_data": 0.5, "bound": "kl"}], ids=["progressive", "half"]
)
def test_a_new_last_layer_on_layers_that_know_the_rows_certifies_nothing(
    options: dict[str, Any], trained: nn.Module
) -> None:
    model = copy.deepcopy(trained)
    model[2] = network(seed=7)[2]  # type: ignore[operator]
    certificate = fit(model, coin_flips(), budget="40 epochs", **options).certificate
    assert labels_of(certificate) == {"heuristic"}
    assert min(s.value for s in certificate.statements if s.quantity == "0-1 error") < 0.4  # the truth is 0.5
    assert any(
        "features that know more" in c.reason and "build the network anew" in c.reason for c in certificate.caveats
    )


@pytest.mark.parametrize(
    ("phase", "options"),
    [("train", {"certificate": "progressive"}), ("prior", {"prior_data": 0.5, "bound": "kl"})],
    ids=["progressive", "half"],
)
def test_a_callback_that_trains_on_all_rows_certifies_nothing(phase: str, options: dict[str, Any]) -> None:
    """A callback that only looks, on the other hand, takes no label away."""
    x, y = coin_flips()
    model, met = network(), list[Event]()

    def learn(event: Event) -> None:
        weights = list(model.parameters())
        for _ in range(30 * (event.phase == phase)):
            with torch.enable_grad():
                slopes = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), weights)
            with torch.no_grad():
                for weight, slope in zip(weights, slopes, strict=True):
                    weight.sub_(slope, alpha=0.5)

    certificate = fit(model, (x, y), budget="30 epochs", callbacks=[met.append, learn], **options).certificate
    assert labels_of(certificate) == {"heuristic"}
    assert min(s.value for s in certificate.statements if s.quantity == "0-1 error") < 0.1  # the truth is 0.5
    (reason,) = [c.reason for c in certificate.caveats]
    assert reason.startswith("a callback changed the network")
    assert labels_of(
        fit(network(4), separable(inputs=4), budget="5 epochs", callbacks=[met.append], **options).certificate
    ) != {"heuristic"}


def test_a_posterior_around_trained_weights_certifies_nothing(trained: nn.Module) -> None:
    assert_refused(certify(Posterior(copy.deepcopy(trained), FIXED), coin_flips()), "use prior_data")


def test_rows_kept_for_the_prior_do_not_clear_weights_that_have_seen_the_others(
    trained: nn.Module, tmp_path: Path
) -> None:
    model = by_state_dict(trained, tmp_path)
    result = fit(model, coin_flips(), bound="kl", prior_data=0.5, budget="3 epochs")
    assert_refused(result.certificate, "build the network anew")


def test_rows_that_the_prior_was_trained_on_certify_nothing_when_they_are_counted_again(tmp_path: Path) -> None:
    data = separable(300)
    result = fit(network(), data, bound="kl", prior_data=0.5, budget="30 epochs", out=tmp_path / "run")
    assert not result.certificate.caveats
    for posterior in (result.posterior, load(tmp_path / "run", network()).posterior):
        again = certify(posterior, data)
        assert [c.reason for c in again.caveats if c.reason.startswith("150 rows stand both in the prior's part")]
        assert labels_of(again) == {"heuristic"}


def test_a_stated_source_is_believed_and_kept(trained: nn.Module, tmp_path: Path) -> None:
    stated = Prior(std=0.003, learn=False, source="another hospital, 2019")
    certificate = certify(Posterior(by_state_dict(trained, tmp_path), stated), coin_flips())
    assert not certificate.caveats
    assert labels_of(certificate, "kl", "disintegrated") >= {"certified"}
    assert certificate.to_dict()["prior_source"] == "another hospital, 2019"
    half = fit(by_state_dict(trained, tmp_path), coin_flips(), prior=stated, prior_data=0.5, budget="2 epochs")
    assert half.certificate.prior_source == "trained on 150 other rows of the data; before that: another hospital, 2019"


def test_a_network_trained_before_in_this_process_certifies_nothing() -> None:
    model = network(4)
    fit(model, separable(inputs=4), budget="20 epochs")
    for options in ({}, {"prior_data": 0.5}):
        again = fit(model, separable(inputs=4), bound="kl", budget="3 epochs", **options).certificate  # type: ignore[arg-type]
        assert labels_of(again) == {"heuristic"}
        assert headline(again) == NOTHING
        assert any("trained the network before" in c.reason for c in again.caveats)


@pytest.mark.parametrize("task", ["2 classes", "10 classes", "regression"])
def test_fresh_networks_are_not_suspected(task: str) -> None:
    """Data on which random networks are often better than a constant answer: classes, or numbers, along one direction."""
    suspected, seeds = 0, 40
    for seed in range(seeds):
        if task == "regression":
            x, _ = coin_flips(200, seed=seed)
            data = (x, x[:, :3].sum(1))
        elif task == "2 classes":
            data = separable(200, seed=seed)
        else:
            g = torch.Generator().manual_seed(seed)
            y = torch.arange(200) % 10
            data = (3 * torch.randn(10, 20, generator=g)[y] + torch.randn(200, 20, generator=g), y)
        model = network(outputs={"2 classes": 2, "10 classes": 10}.get(task, 1), seed=seed + 1000, width=16)
        certificate = certify(Posterior(model, Prior(std=0.05, learn=False)), data, draws=1)
        suspected += bool(certificate.caveats)
    assert suspected <= 0.03 * seeds
