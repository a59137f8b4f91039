"""Reasons that take the label away."""

import torch

from pactrain import Posterior, Prior, certify
from pactrain.certification.statement import Caveat
from tests.certification.small_posteriors import trained
from tests.zoo import build, rows


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


def test_test_rows_among_the_training_rows_are_noticed() -> None:
    x, y = rows(100)
    certificate = certify(trained(), (x, y), test=(x[:7], y[:7]), draws=5)
    mean = certificate.best("0-1 error", "mean network")
    assert mean is not None
    assert mean.label == "heuristic"
    assert any("7 test rows" in note for note in certificate.notes)


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
