"""Networks whose initial weights pass hardly anything on."""

import copy
import itertools

import pytest
import torch
from torch import nn

import pactrain
from pactrain.models.image import image_model
from pactrain.models.mlp import mlp
from pactrain.problem.named_losses import LOSSES
from pactrain.rules.initial_scale import strengthen
from pactrain.rules.presets import AUTO

LOSS = LOSSES["cross_entropy"]


def chain(depth: int, *, conv: bool = False, bias: bool = True) -> nn.Sequential:
    torch.manual_seed(0)
    made = (nn.Conv2d(4, 4, 3, padding=1, bias=bias) if conv else nn.Linear(16, 16, bias=bias) for _ in range(depth))
    layers = itertools.chain.from_iterable((layer, nn.ReLU()) for layer in made)
    return nn.Sequential(*layers, *([nn.Flatten()] if conv else []), nn.Linear(64 if conv else 16, 3))


def passed_on(model: nn.Sequential, shape: tuple[int, ...]) -> float:
    """The deviation between inputs of what reaches the last layer, measured on inputs of our own."""
    with torch.no_grad():
        hidden = model[:-1](torch.randn(500, *shape, generator=torch.Generator().manual_seed(7)))
    return float(hidden.flatten(1).std(0).mean())


@pytest.mark.parametrize("conv", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_deep_chain_passes_signals_on_afterwards(conv: bool, bias: bool) -> None:
    model, shape = chain(12, conv=conv, bias=bias), (4, 4, 4) if conv else (16,)
    assert passed_on(model, shape) < 1e-3
    before = copy.deepcopy(model)
    assert strengthen(model, (torch.zeros(1, *shape), torch.zeros(1).long()), LOSS, 0)
    assert 0.05 < passed_on(model, shape) < 5
    for old, new in zip(before, model, strict=True):
        if isinstance(old, nn.Linear | nn.Conv2d) and isinstance(new, nn.Linear | nn.Conv2d):
            ratio = new.weight / old.weight  # a layer is multiplied by one number
            assert torch.allclose(ratio, ratio.flatten()[0].expand_as(ratio), rtol=1e-4)
            assert old.bias is None or new.bias is None or torch.equal(old.bias, new.bias)
    assert all(torch.equal(a, b) for a, b in zip(before[-1].parameters(), model[-1].parameters(), strict=True))


@pytest.mark.parametrize(
    "model",
    [
        chain(2),
        nn.Linear(16, 3),
        nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)),
        mlp(16, 3, widths=[256] * 3, seed=0),  # at 0.04, just not faint: it gains nothing
    ],
    ids=["few layers", "one layer", "BatchNorm", "three hidden layers"],
)
def test_others_are_left_alone(model: nn.Module) -> None:
    before = copy.deepcopy(model.state_dict())
    assert not strengthen(model, (torch.zeros(1, 16), torch.zeros(1).long()), LOSS, 0)
    assert all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values(), strict=True))


def test_a_last_layer_of_zeros_makes_no_network_faint() -> None:
    model = chain(2)
    nn.init.zeros_(next(model[-1].parameters()))
    assert not strengthen(model, (torch.zeros(1, 16), torch.zeros(1).long()), LOSS, 0)


def test_frozen_layers_are_not_touched() -> None:
    model = chain(12)
    first = model[0]
    assert isinstance(first, nn.Linear)
    first.requires_grad_(False)
    kept = first.weight.clone()
    assert strengthen(model, (torch.zeros(1, 16), torch.zeros(1).long()), LOSS, 0)
    assert torch.equal(first.weight, kept)


def test_values_of_the_data_play_no_part() -> None:
    states = []
    for scale in (0.0, 100.0):
        model = chain(12)
        strengthen(model, (scale * torch.randn(5, 16), torch.zeros(5).long()), LOSS, 0)
        states.append(model.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(states[0].values(), states[1].values(), strict=True))


def test_fit_does_it_and_says_so() -> None:
    x = torch.randn(128, 16, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    found = {}
    for strong in (True, False):
        rules = AUTO.replace(strengthen=strong, min_steps=8, min_epochs=1)
        found[strong] = pactrain.fit(chain(8), (x, y), preset=rules)
    assert found[True].metrics["strengthened"]
    assert not found[False].metrics["strengthened"]
    assert any("scaled" in note for note in found[True].certificate.notes)
    assert not any("scaled" in note for note in found[False].certificate.notes)


def test_the_papers_plain_networks_are_faint() -> None:
    model = image_model("cnn9:width=.125", 3072, 10, seed=0)
    assert strengthen(model, (torch.zeros(1, 3072), torch.zeros(1).long()), LOSS, 0)
