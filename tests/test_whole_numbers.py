"""Whole numbers as inputs and targets train the network that floating-point ones train."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.auto import AUTO
from pactrain.erm import Settings, train
from pactrain.errors import DataError
from pactrain.models import mlp

RULES = AUTO.replace(fixed_epochs=5)


def pixels(n: int = 120) -> tuple[Tensor, Tensor]:
    x = torch.randint(0, 16, (n, 8), generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 7).long()


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(weights(a), weights(b), strict=True))


def test_pixels_as_bytes_are_pixels_as_floats() -> None:
    x, y = pixels()
    raw = x.numpy().astype(np.uint8), y.numpy()
    by_bytes = pactrain.fit(mlp(8, 2, seed=0), raw, test=raw, preset=RULES)
    by_floats = pactrain.fit(mlp(8, 2, seed=0), (x.float(), y), test=(x.float(), y), preset=RULES)
    assert same(by_bytes.model, by_floats.model)
    assert by_bytes.metrics["test"] == by_floats.metrics["test"]
    assert by_bytes.certificate.hashes == by_floats.certificate.hashes
    stated = pactrain.certify(by_bytes.posterior, raw, test=raw, draws=10)
    again = pactrain.certify(by_floats.posterior, (x.float(), y), test=(x.float(), y), draws=10)
    assert [s.value for s in stated.statements] == [s.value for s in again.statements]


def test_prices_in_whole_numbers_get_their_unit() -> None:
    x, _ = pixels()
    prices = x.sum(1) * 1000
    whole = pactrain.fit(mlp(8, 1, seed=0), (x.float(), prices), loss="mse", preset=RULES)
    floats = pactrain.fit(mlp(8, 1, seed=0), (x.float(), prices.float()), loss="mse", preset=RULES)
    assert "units" in whole.config
    assert same(whole.model, floats.model)


def test_plain_training_takes_them_too() -> None:
    x, y = pixels()
    settings = Settings(lr=0.01, steps=30)
    one, other = mlp(8, 2, seed=0), mlp(8, 2, seed=0)
    train(one, (x, y), settings, validation=(x, y))
    train(other, (x.float(), y), settings, validation=(x.float(), y))
    assert same(one, other)


def test_tokens_stay_tokens() -> None:
    x, y = pixels()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(16, 4), nn.Flatten(), nn.Linear(32, 2))
    result = pactrain.fit(model, (x, y), test=(x, y), preset=RULES)
    assert result.metrics["test"]["n"] == len(x)


def test_what_does_not_fit_is_named_by_its_shape() -> None:
    x, y = pixels()
    with pytest.raises(DataError, match=r"x8 and 9x"):
        pactrain.fit(mlp(9, 2, seed=0), (x, y), preset=RULES)
    with pytest.raises(DataError, match="loss='mse'"):
        pactrain.fit(mlp(8, 1, seed=0), (x.float(), x.sum(1)), preset=RULES)
