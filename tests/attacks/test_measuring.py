"""Attacks on what is measured: losses, weights, buffers, interruptions."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pactrain import Certificate, Posterior, Prior, certify, fit
from pactrain.bounds.betting import Histogram
from pactrain.certification.certify import Background
from pactrain.certification.statement import Caveat, Label
from pactrain.runtime.events import Event
from tests.attacks.networks import NOTHING, coin_flips, headline, labels_of, network, separable

# -- the estimated loss ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 1000])
def test_a_loss_that_20_draws_cannot_see_is_no_upper_bound(n: int) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(1000, 3, generator=g)
    y = x[:, 0] + 0.1 * torch.randn(1000, generator=g)
    y[7] += 100  # one row in a thousand
    certificate = fit(network(3, 1), (x[:n], y[:n]), budget="10 epochs").certificate
    assert labels_of(certificate, "unbounded (cgf)", "unbounded (paper)") == {"heuristic"}
    assert "loss of at most" not in str(certificate)
    assert headline(certificate) == NOTHING  # a network that has followed one row has moved too far for any statement


# -- weights used outside their layer's forward ------------------------------------------------------------------------


class TiedDecoder(nn.Module):
    """Multiplies by the weight of its layer once more."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(6, 6, bias=False)
        nn.init.eye_(self.encode.weight)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.encode(x) @ self.encode.weight
        return out


class Functional(nn.Module):
    """Uses its layer once as a layer, and its weight once more by a function."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        nn.init.eye_(self.layer.weight)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x) + nn.functional.linear(x, self.layer.weight)
        return out


def weight_normed() -> nn.Module:
    layer = nn.Linear(6, 6)
    nn.init.eye_(layer.weight)
    return nn.Sequential(nn.utils.parametrizations.weight_norm(layer))


@pytest.mark.parametrize("make", [TiedDecoder, Functional, weight_normed], ids=["tied", "functional", "weight_norm"])
def test_weights_used_elsewhere_are_drawn_as_a_whole(make: Any) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(400, 6, generator=g)
    y = x.argmax(1)
    posterior = Posterior(make(), Prior(std=0.5))
    certificate = certify(posterior, (x, y), draws=3000)
    assert certificate.measured["scheme"] == "chunks"
    with torch.no_grad():
        plain = [float((posterior(x, generator=g).argmax(1) != y).float().mean()) for _ in range(1500)]
    inputs = next(s.inputs for s in certificate.statements if s.bound == "kl")
    found = Histogram.read(inputs["bins"], inputs["counts"])
    mean = found.mean * found.number / inputs["values"]
    truth, spread = sum(plain) / len(plain), torch.tensor(plain).std() / math.sqrt(len(plain))
    assert abs(mean - truth) < 6 * float(spread)
    assert certify(Posterior(nn.Linear(6, 6), Prior(std=0.5)), (x, y), draws=5).measured["scheme"] == "examples"


# -- buffers -----------------------------------------------------------------------------------------------------------


class OwnStatistics(nn.Module):
    """Keeps a running mean of its inputs."""

    centre: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(4))
        self.layers = network(4)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.centre.mul_(0.9).add_(0.1 * x.detach().mean(0))
        out: Tensor = self.layers(x - self.centre)
        return out


def spectral() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize(("make", "name"), [(OwnStatistics, "centre"), (spectral, "0.parametrizations.weight.0._u")])
def test_buffers_that_training_changes_take_the_label(make: Any, name: str) -> None:
    torch.manual_seed(0)
    certificate = fit(make(), separable(inputs=4), bound="kl", budget="5 epochs").certificate
    assert labels_of(certificate) == {"heuristic"}
    assert headline(certificate) == NOTHING
    assert any("changed the buffers" in c.reason and name in c.reason for c in certificate.caveats)


def test_a_buffer_that_stays_takes_nothing() -> None:
    model = OwnStatistics()
    model.forward = lambda x: model.layers(x - model.centre)  # type: ignore[method-assign]
    assert not fit(model, separable(inputs=4), bound="kl", budget="3 epochs").certificate.caveats


# -- smaller -----------------------------------------------------------------------------------------------------------


def test_a_training_that_was_stopped_by_hand_proves_nothing_by_its_test_set() -> None:
    x, y = separable(inputs=4)

    def stop(event: Event) -> None:
        if event.phase == "train" and event.done >= 3:
            raise KeyboardInterrupt

    data, test = (x[:300], y[:300]), (x[300:], y[300:])
    stopped = fit(network(4), data, test=test, callbacks=[stop])
    assert stopped.interrupted
    assert labels_of(stopped.certificate, "test set") == {"heuristic"}
    assert headline(stopped.certificate) == NOTHING
    assert "interrupted by hand" in str(stopped.certificate)
    whole = fit(network(4), data, test=test, budget="3 epochs").certificate
    assert labels_of(whole, "test set") == {"certified"}


@pytest.mark.parametrize("prior_data", [0.0, 0.5])
def test_the_drawn_network_is_the_one_that_is_certified(prior_data: float) -> None:
    x, y = coin_flips(200)
    result = fit(network(), (x, y), bound="kl", prior_data=prior_data, budget="5 epochs", seed=3)
    before = [p.clone() for p in result.model.parameters()]
    drawn = result.drawn()
    risk = next(s.inputs["risk"] for s in result.certificate.statements if s.bound == "disintegrated")
    if prior_data:
        from pactrain.problem.batches import split_numbers
        from pactrain.runtime.seeds import prior_seed

        rest = split_numbers(200, prior_data, prior_seed(3))[1]
        x, y = x[rest], y[rest]
    assert float((drawn(x).argmax(1) != y).double().mean()) == pytest.approx(risk, abs=1e-9)
    assert not torch.equal(next(drawn.parameters()), before[0])
    assert all(torch.equal(p, q) for p, q in zip(result.model.parameters(), before, strict=True))


@pytest.mark.parametrize("width", [64, 14_000])  # below and above the size up to which all groups are summed together
def test_the_divergence_of_weights_in_bfloat16(width: int) -> None:
    g = torch.Generator().manual_seed(0)
    posterior = Posterior(network(width=width).bfloat16(), Prior(std=0.05))
    with torch.no_grad():
        for p in posterior.model.parameters():
            p.add_(0.01 * torch.randn(p.shape, generator=g).bfloat16())
        posterior.log_std.sub_(0.3)
    total = 0.0
    for mean, at, group in zip(
        posterior.means(), posterior.parameter_slices, posterior.group_of_parameters, strict=True
    ):
        shift = mean.detach().reshape(-1).double() - posterior.prior_mean[at].double()
        log_std, prior = posterior.log_std.detach()[at].double(), posterior.prior_log_std.detach()[group].double()
        ratio = ((2 * log_std).exp() + shift**2) / (2 * prior).exp()
        total += float((0.5 * ratio - 0.5 + prior - log_std).sum())
    assert float(posterior.kl_by_group().sum()) == pytest.approx(total, rel=1e-6)


def test_every_caveat_and_note_is_printed() -> None:
    labels: tuple[Label, ...] = ("heuristic", "estimated", "certified", "heuristic")
    doubts = [Caveat(f"doubt {i}", label) for i, label in enumerate(labels)]
    remarks = [f"remark {i}" for i in range(4)]
    background = Background(remarks)
    made: Certificate = certify(Posterior(network()), coin_flips(), draws=3, caveats=doubts, background=background)
    assert all(c.reason in str(made) for c in made.caveats)
    assert {c.reason for c in made.caveats} >= {d.reason for d in doubts}
    assert all(note in str(made) for note in made.notes)
    assert set(made.notes) >= set(remarks)
