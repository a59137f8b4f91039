"""Catoni's bound: its grid of β, and all β together."""

import math

import pytest

from pactrain.bounds import KL, Catoni
from pactrain.bounds.catoni import BETAS


def test_the_grid_of_beta() -> None:
    assert pytest.approx([0.05 * math.sqrt(2) ** i for i in range(17)]) == BETAS
    bound = Catoni(1000, 0.05)
    assert bound.best_beta(0.1, 50.0) in BETAS
    assert Catoni(1000, 0.05, beta=0.3).best_beta(0.1, 50.0) == 0.3


def test_catoni_over_all_beta_is_the_inverse_kl() -> None:
    risk, n, delta, kl = 0.1, 2000, 0.05, 60.0
    price = kl + math.log(2 * math.sqrt(n) / delta)
    as_catoni = [
        Catoni(n, 0.5, beta=0.01 * i).value(risk, price - math.log(2)) for i in range(1, 1000)
    ]  # ln 1/δ = ln 2 is added again by the bound, so that its right-hand side is R/n
    assert min(as_catoni) == pytest.approx(KL(n, delta).value(risk, kl), rel=1e-6)
