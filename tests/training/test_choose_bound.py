"""Bounds by name, and how a bound changes the rules and the loss that is trained on."""

import pytest
import torch

from pactrain import PactrainError
from pactrain.bounds.by_name import BOUNDED, CONSTANT_MOMENT, NAMES
from pactrain.problem.named_losses import LOSSES
from pactrain.rules.presets import AUTO, CERTIFY, PAPER
from pactrain.training.choose_bound import rules_with, training_loss


def test_rules_follow_the_bound() -> None:
    assert rules_with(AUTO, "auto") is AUTO
    assert all(rules_with(AUTO, name) is CERTIFY for name in BOUNDED)
    assert all(rules_with(PAPER, name) is PAPER for name in BOUNDED)
    assert rules_with(AUTO, "cgf").mode == "cgf"
    with pytest.raises(PactrainError, match=f"'klx' is not known; use one of {', '.join(NAMES)}"):
        rules_with(AUTO, "klx")


def test_losses_are_clipped_where_the_bound_needs_it() -> None:
    own = LOSSES["cross_entropy"]
    far = (torch.tensor([[50.0, 0.0]]), torch.tensor([1]))
    identity = torch.nn.Identity()
    assert training_loss("auto", own) is own
    assert float(own(identity, far)) == pytest.approx(50.0)
    for name in BOUNDED:
        assert float(training_loss(name, own)(identity, far)) <= 1.0
    assert all(training_loss(name, own) is own for name in CONSTANT_MOMENT)
