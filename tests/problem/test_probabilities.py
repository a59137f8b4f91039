"""Functions that turn outputs into probabilities survive a file by their names."""

import torch

from pactrain.problem.named_losses import LOSSES
from pactrain.problem.probabilities import PROBABILITIES, name_of_probabilities


def test_every_loss_with_probabilities_has_a_name_for_them() -> None:
    found = [loss.probabilities for loss in LOSSES.values() if loss.probabilities is not None]
    assert len(found) > 2
    for function in found:
        name = name_of_probabilities(function)
        assert name is not None
        assert PROBABILITIES[name] is function


def test_a_users_own_function_has_none() -> None:
    assert name_of_probabilities(lambda output: output.softmax(1)) is None
    assert name_of_probabilities(torch.sigmoid) == "sigmoid"
