"""Left-out losses from one look at a trained network, against training again without each example."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import CallableLoss
from pactrain.rules.gamma.trained_leave_one_out import CannotLeaveOut
from pactrain.rules.gamma.walk import leave_out
from tests.rules.gamma.left_out import GAMMA, STD, asked, minimise, trained
from tests.zoo import build, rows


def refitted(start: nn.Module, x: Tensor, y: Tensor, loss: str) -> tuple[float, float, float]:
    """The mean loss of examples that were left out, its slope as their outputs grow, from two losses of grown ones, and how many are wrong."""
    losses, wrong = [], 0
    for j in range(len(y)):
        model, rest = copy.deepcopy(start), torch.arange(len(y)) != j
        minimise(model, x[rest], y[rest], loss)
        one = x[j : j + 1], y[j : j + 1]
        grown = [lambda x, size=size, model=model: size * model(x) for size in (1.0, 1 + 1e-6, 1 - 1e-6)]
        losses.append([float(as_loss(loss, (x, y))(predict, one).detach()) for predict in grown])
        wrong += int(model(one[0]).argmax(1) != one[1])
    mean, above, below = (sum(column) / len(losses) for column in zip(*losses, strict=True))
    return mean, (above - below) / 2e-6, wrong / len(losses)


def test_for_squares_it_is_exactly_refitting_without_the_example() -> None:
    posterior, start, x, y = trained(1, "mse")
    assert asked(posterior, (x, y), "mse").estimate(GAMMA)[:2] == pytest.approx(
        refitted(start, x, y, "mse")[:2], rel=1e-4
    )


def test_some_examples_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, start, x, y = trained(1, "mse", n=60)
    exactly = refitted(start, x, y, "mse")[0]
    assert asked(posterior, [(x, y)], "mse").estimate(GAMMA).loss == pytest.approx(exactly, rel=1e-4)
    monkeypatch.setattr("pactrain.rules.constants.EXAMPLES", 80)  # nodes: half as many
    some = asked(posterior, [(x, y)], "mse")
    assert some.examples.count == 40
    assert some.estimate(GAMMA).loss == pytest.approx(exactly, rel=0.5)


def test_whole_images_as_outputs_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, _, x, y = trained(1, "mse")
    monkeypatch.setattr("pactrain.rules.gamma.trained_leave_one_out.MOST_OUTPUTS", 24)
    with pytest.raises(CannotLeaveOut):
        asked(posterior, (x, y), "mse")


@pytest.mark.parametrize("classes", [2, 3])
def test_for_classes_it_is_nearly_that(classes: int) -> None:
    posterior, start, x, y = trained(classes, "cross_entropy")
    measured = asked(posterior, (x, y), "cross_entropy").estimate(GAMMA)
    again, _, wrong = refitted(start, x, y, "cross_entropy")
    fitted = float(F.cross_entropy(posterior.model(x), y).detach())
    assert abs(measured.loss - again) < 0.5 * (again - fitted)
    assert measured.wrong == pytest.approx(wrong, abs=1.5 / len(y))
    assert wrong > float((posterior.model(x).argmax(1) != y).double().mean())


def test_one_score_is_wrong_by_its_sign() -> None:
    posterior, _, x, y = trained(2, "cross_entropy")
    apart = nn.Linear(4, 1).double()
    with torch.no_grad():
        apart.weight.copy_(posterior.model.weight[1:] - posterior.model.weight[:1])  # type: ignore[index]
        apart.bias.copy_(posterior.model.bias[1:] - posterior.model.bias[:1])  # type: ignore[index]
    alone = Posterior(apart, Prior(per="model", std=STD))

    def loss(predict: Any, batch: Any) -> Tensor:
        return F.binary_cross_entropy_with_logits(predict(batch[0])[:, 0], batch[1].double(), reduction="none")

    expected = float(((apart(x)[:, 0] > 0).long() != y).double().mean())
    assert asked(alone, (x, y), loss).estimate(1e-9).wrong == pytest.approx(expected)


def test_more_memory_of_an_example_makes_its_absence_dearer() -> None:
    posterior, _, x, y = trained(3, "cross_entropy")
    found = asked(posterior, (x, y), "cross_entropy")
    fitted = float(F.cross_entropy(posterior.model(x), y).detach())
    values = [found.estimate(gamma).loss for gamma in (1e-6, 1.0, 10.0)]
    assert values[0] == pytest.approx(fitted, rel=1e-3)
    assert values == sorted(values)


def test_a_loss_that_calls_the_network_twice_is_not_asked() -> None:
    def loss(predict: Any, batch: Any) -> Tensor:
        x, y = batch
        return F.cross_entropy(predict(x) + predict(-x), y, reduction="none")

    posterior = Posterior(build("mlp"))
    with pytest.warns(UserWarning, match=r"was not made \(the loss of a batch does not follow from one output"):
        assert leave_out(posterior, TensorBatches(rows(), 16), CallableLoss.of(loss), len(rows()[1]), 0) is None
