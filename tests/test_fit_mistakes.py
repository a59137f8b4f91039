"""What `fit` says to mistakes, and what it remarks on in networks that have learnt nothing, or had before."""

from typing import Any

import pytest
import torch
from torch import nn

import pactrain
from pactrain import PactrainError
from pactrain.runtime.errors import DataError
from tests.zoo import build, rows


def test_a_network_that_cannot_learn_is_told_so() -> None:
    _, y = rows()
    result = pactrain.fit(build("mlp"), (torch.zeros(48, 6), y), budget="20 epochs")
    assert any("largest class" in note for note in result.notes)


def test_losses_that_are_not_per_example_are_refused() -> None:
    with pytest.raises(PactrainError, match="one loss per example"):
        pactrain.fit(build("mlp"), rows(), loss=lambda predict, b: nn.functional.cross_entropy(predict(b[0]), b[1]))
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), loss="zero_one")
    with pytest.raises(DataError, match="none of them is a target"):
        pactrain.fit(build("keywords"), [{"left": torch.ones(2, 3), "right": torch.ones(2, 3)}])


def test_typical_mistakes_are_answered(recwarn: pytest.WarningsRecorder) -> None:
    x, y = rows()
    network = build("mlp")

    def refused(words: str, model: Any = network, data: Any = (x, y), **options: Any) -> None:
        with pytest.raises(PactrainError, match=words):
            pactrain.fit(model, data, **options)

    refused("the class Linear; make a network of it first", model=nn.Linear)
    refused("say which with out=", resume=True)
    refused("the training data is one Tensor; pass a pair", data=x)
    refused("the training data is one dict; pass a pair", data={"x": x, "y": y})
    refused(r"write \(X, y\) in round brackets", data=[x, y])
    refused("the training rows have 6 features and the test rows 5", test=(x[:, :5], y))
    frozen = x.numpy()
    frozen.flags.writeable = False  # as pandas gives them
    pactrain.fit(network, (frozen, y), budget="1 epoch")
    assert not recwarn.list


def test_a_network_that_was_trained_elsewhere_is_remarked_on() -> None:
    data = rows(200)
    model = build("mlp")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()
        optimizer.step()
    caveats = pactrain.fit(model, data, budget="1 epoch").certificate.caveats
    assert any("better on the counted examples than chance allows" in c.reason for c in caveats)
    assert not pactrain.fit(build("mlp"), data, budget="1 epoch").certificate.caveats


def test_inputs_and_targets_that_were_not_scaled_are_named() -> None:
    x, _ = rows()
    x = x.clone()
    x[:, 2] = 500 * x[:, 2] + 700
    target = x[:, :1] * 40 + 150
    as_they_come = pactrain.rules.presets.AUTO.replace(units=False)
    notes = pactrain.fit(torch.nn.Linear(6, 1), (x, target), preset=as_they_come, budget="1 epoch").notes
    assert any("Column 2 of the inputs" in note and "Scale them" in note for note in notes)
    assert any("targets have values around" in note for note in notes)
    assert not pactrain.fit(torch.nn.Linear(6, 1), (rows()[0], rows()[0][:, :1].clone()), budget="1 epoch").notes


def test_whole_numbers_in_batches_of_the_users_own() -> None:
    x, y = torch.randint(0, 9, (40, 8)), torch.randint(0, 2, (40,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
    with pytest.raises(DataError, match=r"shape \(16, 8\).*torch.int64.*x.float\(\)"):
        pactrain.fit(nn.Linear(8, 2), loader)
