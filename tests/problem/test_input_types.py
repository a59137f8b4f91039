"""Whole numbers as inputs and targets train the network that floating-point ones train."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.baselines.plain_training import Settings, train
from pactrain.models import mlp
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import TensorBatches
from pactrain.problem.input_types import as_network_takes
from pactrain.rules.presets import AUTO
from pactrain.runtime.errors import DataError

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


class Masked(nn.Module):
    """Pools the rows that are not padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        kept: Tensor = (self.layer(x) * (~padding)[..., None]).sum(1)
        return kept


def test_masks_stay_masks() -> None:
    x, y = pixels()
    series = torch.randn(120, 6, 3, generator=torch.Generator().manual_seed(1))
    padding = x[:, :6] > 7
    torch.manual_seed(0)
    result = pactrain.fit(Masked(), (series, padding, y), preset=RULES)
    with torch.no_grad():
        right = (result.model(series, padding).argmax(1) == y).double().mean()
    assert result.metrics["train"]["accuracy"] == pytest.approx(float(right))
    flags = pactrain.fit(mlp(6, 2, seed=0), (padding, y), preset=RULES)
    assert same(flags.model, pactrain.fit(mlp(6, 2, seed=0), (padding.float(), y), preset=RULES).model)


class Mixed(nn.Module):
    """Tokens beside numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(16, 2), nn.Linear(3, 2)

    def forward(self, token: Tensor, numbers: Tensor) -> Tensor:
        out: Tensor = self.table(token) + self.layer(numbers)
        return out


def test_numbers_beside_tokens() -> None:
    x, y = pixels()
    torch.manual_seed(0)
    result = pactrain.fit(Mixed(), (x[:, 0], x[:, 1:4], y), preset=RULES)
    assert result.metrics["train"]["n"] == 120


class OwnFloats(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = mlp(8, 2, seed=0)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x.float())
        return out


def test_a_network_that_makes_floats_itself_gets_units_too() -> None:
    x, y = pixels()
    result = pactrain.fit(OwnFloats(), (4000 * x, y), preset=RULES)
    assert "units" in result.config


class Strange(nn.Module):
    """Buffers that are expanded, assigned anew and counted up."""

    scale: Tensor
    last: Tensor
    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(16, 4), nn.Linear(32, 2)
        self.register_buffer("scale", torch.ones(1).expand(32))
        self.register_buffer("last", torch.zeros(1))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        hidden = self.table(x).flatten(1) * self.scale
        self.last = hidden.detach()
        out: Tensor = self.layer(hidden)
        return out


def test_buffers_of_any_kind_are_what_they_were() -> None:
    x, y = pixels()
    torch.manual_seed(0)
    model = Strange()
    as_network_takes(model, TensorBatches((x, y), 64), as_loss(None, (x, y)))
    assert float(model.calls) == 0
    assert model.last.shape == (1,)
    assert model.scale.stride() == (0,)
    assert pactrain.fit(model, (x, y), preset=RULES).metrics["train"]["n"] == 120


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.bool])
def test_labels_of_any_type_in_batches_of_ones_own(kind: torch.dtype) -> None:
    x, y = pixels()
    loader = DataLoader(TensorDataset(x.float(), y.to(kind)), batch_size=40)
    usual = DataLoader(TensorDataset(x.float(), y), batch_size=40)
    result, expected = (pactrain.fit(mlp(8, 2, seed=0), data, preset=RULES) for data in (loader, usual))
    assert same(result.model, expected.model)
    assert "ece" in result.metrics["train"]
    whole, floats = (
        DataLoader(TensorDataset(x.float(), amounts), batch_size=40) for amounts in (x.sum(1), x.sum(1).float())
    )
    by_whole, by_floats = (
        pactrain.fit(mlp(8, 1, seed=0), data, loss="huber", preset=RULES).model for data in (whole, floats)
    )
    assert same(by_whole, by_floats)


def test_frames_with_flags_and_gaps_and_lists_of_labels() -> None:
    x, y = pixels()
    frame = pd.DataFrame(x.numpy()[:, :7]).assign(flag=x.numpy()[:, 7] > 7)
    numbers = torch.tensor(frame.to_numpy(dtype=np.float32))
    expected = pactrain.fit(mlp(8, 2, seed=0), (numbers, y), preset=RULES).model
    assert same(pactrain.fit(mlp(8, 2, seed=0), (frame, y.tolist()), preset=RULES).model, expected)
    nullable = frame.convert_dtypes()
    assert same(pactrain.fit(mlp(8, 2, seed=0), (nullable, pd.Series(y, dtype="Int64")), preset=RULES).model, expected)
    nullable.iloc[3, 2] = pd.NA
    with pytest.raises(DataError, match="first in row 3"):
        pactrain.fit(mlp(8, 2, seed=0), (nullable, y), preset=RULES)
    with pytest.raises(DataError, match="toarray"):
        pactrain.fit(mlp(8, 2, seed=0), (csr_matrix(x.numpy()), y), preset=RULES)


def test_half_precision_is_refused() -> None:
    x, y = pixels()
    with pytest.raises(pactrain.runtime.errors.PactrainError, match="bfloat16"):
        pactrain.fit(mlp(8, 2, seed=0).half(), (x, y))


def test_what_does_not_fit_is_named_by_its_shape() -> None:
    x, y = pixels()
    with pytest.raises(DataError, match=r"x8 and 9x"):
        pactrain.fit(mlp(9, 2, seed=0), (x, y), preset=RULES)
    with pytest.raises(DataError, match="loss='mse'"):
        pactrain.fit(mlp(8, 1, seed=0), (x.float(), x.sum(1)), preset=RULES)
    with pytest.raises(DataError, match="8 features and the test rows 7"):
        pactrain.fit(mlp(8, 2, seed=0), (x, y), test=(x[:, :7], y), preset=RULES)
    with pytest.raises(DataError, match="1 to 2"):
        pactrain.fit(nn.Sequential(nn.Embedding(16, 4), nn.Flatten(), nn.Linear(32, 2)), (x, y + 1), preset=RULES)
