"""Training with the user's own optimiser."""

import torch

import pactrain
from tests.zoo import SHORT, build, rows, weights


def test_any_torch_optimiser() -> None:
    for make in (
        lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
        lambda groups: torch.optim.RMSprop(groups),
        lambda groups: torch.optim.AdamW(groups, weight_decay=0.01),
    ):
        result = pactrain.fit(build("mlp"), rows(), optimizer=make, budget=SHORT)
        assert result.history[-1]["risk"] < result.history[0]["risk"]


def test_gradients_are_learned_from_after_a_callback_has_cleared_them() -> None:
    runs = []
    for clear in (False, True):
        model = build("mlp")
        callbacks = [lambda event, model=model: model.zero_grad()] if clear else []
        runs.append(weights(pactrain.fit(model, rows(), callbacks=callbacks, budget=SHORT).model))
    assert torch.equal(*runs)
