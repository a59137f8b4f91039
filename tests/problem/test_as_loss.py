"""Functions of the user's: of (predict, batch), of (output, target), in the order of Keras; what cannot be told is asked for."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pactrain
from pactrain.problem.as_loss import as_loss
from pactrain.problem.losses import CallableLoss
from pactrain.runtime.errors import PactrainError
from tests.zoo import build, rows


def focal(output: Tensor, target: Tensor) -> Tensor:
    """Focal loss."""
    losses = F.cross_entropy(output, target, reduction="none")
    return (1 - (-losses).exp()).square() * losses


class Focal(nn.Module):
    """The same as a module."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return focal(output, target)


@pytest.mark.parametrize("own", [focal, Focal()])
def test_a_loss_of_output_and_target(own: Any) -> None:
    model, data = build("mlp"), rows(96)
    loss = as_loss(own, data, model)
    assert loss.of_outputs
    assert loss.task is None  # what an output means is not known
    assert torch.equal(loss(model, data), focal(model(data[0]), data[1]))
    pactrain.fit(model, data, loss=own, budget="60 epochs")
    assert (model(data[0]).argmax(1) == data[1]).double().mean() > 0.9


def test_what_calls_its_first_argument_reads_batches_itself() -> None:
    def of_batch(predict: Any, batch: Any) -> Tensor:
        return focal(predict(batch[0]), batch[1])

    assert isinstance(as_loss(of_batch, rows(), build("mlp")), CallableLoss)
    assert isinstance(as_loss(lambda a, b: of_batch(a, b), rows(), build("mlp")), CallableLoss)


def test_the_order_of_keras() -> None:
    def lopsided(y_true: Tensor, y_pred: Tensor) -> Tensor:
        return torch.where(y_pred[:, 0] > y_true, 3.0, 1.0) * (y_pred[:, 0] - y_true).abs()

    x, model = rows()[0], nn.Linear(6, 1)
    loss = as_loss(lopsided, (x, x[:, 0]), model)
    assert torch.equal(loss(model, (x, x[:, 0])), lopsided(x[:, 0], model(x)))


def test_what_cannot_be_told_is_asked_for() -> None:
    with pytest.raises(PactrainError, match="one loss per example"):
        as_loss(lambda output, target: F.cross_entropy(output, target), rows(), build("mlp"))
    with pytest.raises(
        PactrainError, match=r"neither as loss\(predict, batch\) .*KeyError.* nor as loss\(output, target\)"
    ):
        as_loss(lambda a, b: dict[str, Tensor]()["a"], rows(), build("mlp"))
    for wrong in (3, nn.Linear, ["mse"]):
        with pytest.raises(PactrainError, match="must be one of cross_entropy"):
            as_loss(wrong, rows(), build("mlp"))  # type: ignore[arg-type]


def test_a_loss_that_puts_every_row_beside_every_other_is_refused() -> None:
    with pytest.raises(PactrainError, match=r"\(2, 1\) and target \(2,\) were broadcast.*output.squeeze\(1\)"):
        as_loss(
            lambda output, target: (output - target).square(), (rows()[0], torch.zeros(len(rows()[0]))), nn.Linear(6, 1)
        )
