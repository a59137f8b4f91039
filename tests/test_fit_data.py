"""The data that `fit` takes: its kinds, types, layouts and shapes."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.runtime.errors import DataError
from tests.zoo import build, rows


def test_all_kinds_of_data_are_read_alike() -> None:
    x, y = rows()
    batches = [(x[:24], y[:24]), (x[24:], y[24:])]
    kinds: list[Any] = [
        (x, y),
        (x.numpy().astype(np.float64), y.numpy().astype(np.int32)),
        TensorDataset(x, y),
        DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True),
        batches,
    ]
    found = [pactrain.fit(build("mlp"), data, budget="2 epochs") for data in kinds]
    for result in found:
        assert result.metrics["train"]["n"] == 48
        with torch.no_grad():
            own = nn.functional.cross_entropy(result.model(x), y)
        assert result.metrics["train"]["loss"] == pytest.approx(float(own), rel=1e-5)
    for result in found[1:3]:  # rows that can be told apart are put into the same batches
        assert torch.equal(result.model[0].weight, found[0].model[0].weight)  # type: ignore[index]
    with pytest.raises(DataError, match="only once"):
        pactrain.fit(build("mlp"), iter(batches), budget="1 epoch")
    with pytest.raises(DataError, match="different numbers of rows"):
        pactrain.fit(build("mlp"), (x, y[:-1]))
    bad = x.clone()
    bad[3, 0] = float("nan")
    with pytest.raises(DataError, match="first in row 3"):
        pactrain.fit(build("mlp"), (bad, y))
    with pytest.raises(DataError, match="no rows"):
        pactrain.fit(build("mlp"), (x[:0], y[:0]))
    with pytest.raises(DataError, match="cannot be read"):
        pactrain.fit(build("mlp"), 3)


def test_odd_targets_and_types() -> None:
    x, y = rows()
    wide = build("mlp").double()
    assert pactrain.fit(wide, (x.double(), y), budget="1 epoch").model[0].weight.dtype == torch.float64  # type: ignore[index]
    with pytest.raises(DataError, match="one output per class"):
        pactrain.fit(nn.Linear(6, 1), (x, y))
    with pytest.raises(DataError, match="two at least"):
        pactrain.fit(nn.Linear(6, 1), (x, y), loss="cross_entropy")
    with pytest.raises(DataError, match="one class number"):
        pactrain.fit(build("mlp"), (x, y[:, None]))
    with pytest.raises(DataError, match="1 to 3; a network with 3 scores knows 0 to 2"):
        pactrain.fit(build("mlp"), (x, y + 1))


class Viewing(nn.Module):
    """A convolution whose output is flattened by view(), which needs the usual layout."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(channels, 4, 3, padding=1), nn.Linear(4 * 64, 2)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.last(torch.relu(self.first(x)).view(len(x), -1))
        return scores


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("network", ["flatten", "view"])
def test_images_are_laid_out_as_the_network_can_take_them(network: str, channels: int) -> None:
    x = torch.randn(40, channels, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(channels, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 64, 2))
    seen = []
    hooked = Viewing(channels) if network == "view" else model
    hooked.register_forward_pre_hook(lambda _, args: seen.append(args[0].stride(1) == 1))
    result = pactrain.fit(hooked, (x, (x.mean((1, 2, 3)) > 0).long()), budget="2 epochs")
    assert seen[-1] is (network == "flatten")
    assert result.metrics["train"]["n"] == 40


@pytest.mark.parametrize("model", [nn.Linear(5, 2), nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))])
def test_a_network_for_other_inputs_is_told_the_shape_of_the_data(model: nn.Module) -> None:
    data = torch.randn(50, 4), torch.arange(50) % 2
    with pytest.raises(DataError, match=r"shape \(50, 4\) .*cannot be multiplied"):
        pactrain.fit(model, data)


class Tokens(nn.Module):
    """The mean of what is looked up, and a linear layer."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(30, 8, sparse=sparse), nn.Linear(8, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.last(self.table(tokens).mean(1))
        return scores


@pytest.mark.parametrize("sparse", [False, True])
def test_texts_of_other_lengths_and_sparse_gradients(sparse: bool) -> None:
    torch.manual_seed(0)
    y = torch.arange(200) % 2
    tokens = torch.randint(0, 15, (200, 10)) + 15 * y[:, None]
    longer = torch.cat([tokens, tokens[:, :5]], 1)
    result = pactrain.fit(Tokens(sparse=sparse), (tokens, y), test=(longer, y), budget="20 epochs")
    assert result.metrics["test"]["accuracy"] > 0.9
