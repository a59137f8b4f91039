"""Dropout put into a network for a while."""

import pytest
import torch
from torch import Tensor, nn

from pactrain.problem.dropout import dropping
from pactrain.runtime.errors import PactrainError
from tests.baselines.small_problem import network, problem


def test_dropout_behind_activations_leaves_no_trace() -> None:
    model, x = network().train(), problem()[0]
    names, clean = set(model.state_dict()), model(x)
    with dropping(model, 0.5):
        hidden: list[Tensor] = []
        hook = model[2].register_forward_hook(lambda _, inputs, __: hidden.append(inputs[0]))
        assert not torch.equal(model(x), clean)
        alive = model[:1](x).relu() > 0
        assert float((hidden[0][alive] == 0).double().mean()) == pytest.approx(0.5, abs=0.06)  # of about a thousand
        hook.remove()
        model.eval()
        assert torch.equal(model(x), clean)  # as any Dropout layer
        model.train()
    assert torch.equal(model(x), clean)
    assert set(model.state_dict()) == names


def test_dropout_of_a_network_that_has_it() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
    layer = model[2]
    assert isinstance(layer, nn.Dropout)
    with dropping(model, 0.7):
        assert layer.p == 0.7
        assert not model[1]._forward_hooks
    assert layer.p == 0.1
    with pytest.raises(PactrainError, match="no activation layer"), dropping(nn.Linear(2, 2), 0.5):
        pass
