"""What a loss says of itself, and a callable that says nothing."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pactrain.problem.losses import CallableLoss, Loss
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused

BATCH = (torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))


def cross_entropy(predict: Any, batch: Any) -> Tensor:
    """A user's callable by the name of one of ours."""
    return nn.functional.cross_entropy(predict(batch[0]), batch[1], reduction="none")


def test_a_callable_says_nothing_of_its_task_and_range() -> None:
    own = CallableLoss.of(cross_entropy)
    assert (own.task, own.clip, own.probabilities, own.of_outputs) == (None, None, None, False)
    assert (own.name, own.full_name, own.title) == ("custom", "cross_entropy", "loss")
    with pytest.raises(PactrainError, match="your loss has no upper limit"):
        own.clipped()
    with pytest.raises(PactrainError, match="no function of an output and a target"):
        own.per_example(*BATCH)


def test_a_callable_gives_what_the_named_loss_gives_without_a_score() -> None:
    network, named = nn.Identity(), LOSSES["cross_entropy"]
    losses, scores = CallableLoss.of(cross_entropy).with_score(network, BATCH)
    expected, errors = named.with_score(network, BATCH)
    assert torch.equal(losses, expected)
    assert scores is None
    assert errors is not None
    assert errors.tolist() == [0.0, 1.0]


def test_an_object_that_is_called_has_the_name_of_its_class() -> None:
    class Distance:
        def __call__(self, predict: Any, batch: Any) -> Tensor:
            return torch.ones(2)

    assert CallableLoss.of(Distance()).full_name == "Distance"


@pytest.mark.parametrize("kind", ["callable", "named"])
def test_the_users_part_of_a_loss_is_guarded(kind: str) -> None:
    def fails(*_: Any) -> Tensor:
        raise KeyError("not such a batch")

    loss = CallableLoss.of(fails) if kind == "callable" else Loss("own", fails, "classification")
    with pytest.raises(Refused, match="not such a batch"):
        loss.guarded()(nn.Identity(), BATCH)
    with pytest.raises(KeyError):
        loss(nn.Identity(), BATCH)


def test_a_loss_with_a_range_is_scaled_and_cross_entropy_is_clipped() -> None:
    ranged = Loss("own", lambda output, target: output[:, 0], "classification", low=-1.0, high=3.0).clipped()
    assert ranged(nn.Identity(), BATCH).tolist() == [0.75, 0.25]
    outside = (torch.tensor([[-9.0], [9.0]]), BATCH[1])  # a loss that breaks its word earns nothing by it
    assert ranged(nn.Identity(), outside).tolist() == [0.0, 1.0]
    clipped = LOSSES["cross_entropy"].clipped()
    assert clipped(nn.Identity(), (torch.tensor([[0.0, 50.0]]), torch.tensor([0]))).tolist() == [1.0]
    with pytest.raises(PactrainError, match="mse has no upper limit"):
        LOSSES["mse"].clipped()
