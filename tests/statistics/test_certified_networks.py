"""Whole certificates of small trained networks against their true error, which a large sample tells."""

import torch
from torch import nn

import pactrain
from pactrain.auto import CERTIFY

SETS = 12
TRUTH = 20_000


def data(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes in five dimensions, a tenth of the labels wrong."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=g)
    y = (x[:, 0] + x[:, 1] > 0).long()
    return x, torch.where(torch.rand(n, generator=g) < 0.1, 1 - y, y)


def test_certified_errors_are_above_the_true_errors_and_say_something() -> None:
    values = []
    for seed in range(SETS):
        torch.manual_seed(seed)
        rules = CERTIFY.replace(draws=3, std_points=8, min_steps=600, min_epochs=1)
        prior = pactrain.Prior(std=0.5)
        result = pactrain.fit(nn.Linear(5, 2), data(2000, seed), bound="kl", prior=prior, preset=rules, seed=seed)
        new = data(TRUTH, 10_000 + seed)
        true = pactrain.certify(result.posterior, new, draws=TRUTH, seed=1).best("0-1 error")
        stated = result.certificate.best("0-1 error", label="certified")
        assert stated is not None
        assert true is not None
        assert stated.value > true.inputs["mean"], seed
        values.append(stated.value)
    assert sum(values) / SETS < 0.4
