"""Which weights are random, and which networks have none that could be."""

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import PactrainError, Posterior, Prior
from tests.zoo import build


def test_what_is_random() -> None:
    assert Posterior(build("frozen")).names == ("head.weight", "head.bias")
    assert "second.weight" not in Posterior(build("tied")).names
    assert Posterior(build("adapter")).names == ("down", "up")
    posterior = Posterior(build("mlp"))
    assert posterior.num_weights == sum(p.numel() for p in build("mlp").parameters())
    assert posterior.num_bytes == 8 * posterior.num_weights + 4 * len(posterior.groups)
    assert f"{posterior.num_bytes:,} bytes" in repr(posterior)


def test_what_cannot_be_random_is_refused() -> None:
    with pytest.raises(PactrainError, match="nothing to train"):
        Posterior(nn.ReLU())
    with pytest.raises(PactrainError, match="lazy"):
        Posterior(nn.LazyLinear(3))
    broken = nn.Linear(2, 2)
    with torch.no_grad():
        broken.bias[0] = float("nan")
    with pytest.raises(PactrainError, match="'bias'"):
        Posterior(broken)
    with pytest.raises(PactrainError, match="positive"):
        Prior(std=0.0)


class TwoNames(nn.Module):
    """A layer that is known by two names."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
        self.head = self.body[2]

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)  # type: ignore[no-any-return]


def test_a_layer_with_two_names_keeps_its_weights() -> None:
    model, x = TwoNames(), torch.randn(20, 3)
    own = model.head.weight
    Posterior(model)(x)
    assert isinstance(own, nn.Parameter)
    assert model.head.weight is own
    pactrain.fit(model, (x, (x[:, 0] > 0).long()), budget="2 epochs")
    assert model.head.weight is own
