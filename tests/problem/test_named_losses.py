"""Whatever a user passes as `loss=` becomes a `Loss`."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pactrain.problem.as_loss import as_loss
from pactrain.problem.losses import CallableLoss, Loss
from pactrain.problem.named_losses import LOSSES, named_loss
from pactrain.runtime.errors import PactrainError


def test_what_is_a_loss_stays_the_same_and_a_callable_is_wrapped_once() -> None:
    def own(predict: Any, batch: Any) -> Tensor:
        return torch.zeros(len(batch))

    given = Loss("own", lambda output, target: output, "regression")
    assert as_loss(given, None) is given
    assert as_loss("mse", None) is LOSSES["mse"]
    wrapped = as_loss(own, None)
    assert isinstance(wrapped, CallableLoss)
    assert wrapped.function is own
    assert as_loss(wrapped, None) is wrapped


def test_the_default_follows_the_type_of_the_target() -> None:
    x = torch.zeros(3, 2)
    assert as_loss(None, (x, torch.tensor([0, 1, 1]))).name == "cross_entropy"
    assert as_loss(None, (x, torch.zeros(3))).name == "mse"


def test_a_named_loss_has_to_fit_the_target() -> None:
    assert named_loss(None, "regression", unit=3.0).unit == 3.0
    with pytest.raises(PactrainError, match="does not fit a classification target; use one of cross_entropy, hinge"):
        named_loss("mse", "classification")
