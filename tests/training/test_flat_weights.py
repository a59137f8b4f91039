"""The weights of a network as one vector: what the network sees, where gradients go, and what is put back."""

import pytest
import torch
from torch import nn

from pactrain import Posterior
from pactrain.training import flat_weights
from pactrain.training.flat_weights import FlatWeights
from tests.zoo import build


def mixed() -> nn.Sequential:
    """A network of two dtypes, whose weights cannot be views of one vector."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[1].double()
    return model


def shown(flat: FlatWeights) -> torch.Tensor:
    """What the network's parameters hold, in the posterior's order."""
    return torch.cat([p.detach().reshape(-1).to(flat.means) for p in flat.posterior.means()])


@pytest.mark.parametrize("network", ["mlp", "mixed"])
def test_the_network_sees_the_draw_and_gets_its_means_back(network: str) -> None:
    posterior = Posterior(mixed() if network == "mixed" else build("mlp"))
    before = [p.detach().clone() for p in posterior.means()]
    flat = FlatWeights(posterior)
    flat.attach()
    assert flat.aliased == (network == "mlp")
    flat.draw.copy_(flat.means + 1)
    flat.put()
    assert torch.allclose(shown(flat), flat.draw, atol=1e-6)  # but for the rounding of a float32 layer
    flat.rest()
    assert torch.equal(shown(flat), flat.means)
    flat.release()
    assert all(torch.equal(p, b) for p, b in zip(posterior.means(), before, strict=True))
    storages = [p.untyped_storage().data_ptr() for p in posterior.means()]
    assert len(set(storages)) == len(storages)
    assert all(p.untyped_storage().nbytes() == p.nbytes for p in posterior.means())


@pytest.mark.parametrize("most", [0, flat_weights.GATHERED])
def test_gradients_are_those_of_a_network_of_its_own(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added up in place, or gathered after the backward pass; also after somebody has cleared them."""
    monkeypatch.setattr(flat_weights, "GATHERED", most)
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    model, twin = (nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    flat = FlatWeights(Posterior(model))
    flat.attach()
    assert flat.adds_up == (most == 0)
    for clear in (False, True):
        flat.grads.zero_()
        if clear:
            model.zero_grad()
        flat.draw.copy_(flat.means)
        flat.put()
        model(x).square().sum().backward()
        flat.take_grads()
        twin.zero_grad()
        twin(x).square().sum().backward()
        expected = torch.cat([p.grad.reshape(-1) for p in twin.parameters() if p.grad is not None])
        assert torch.equal(flat.grads, expected)
