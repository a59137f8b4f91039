"""The best constant answer against numbers worked out by hand and by brute force."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pactrain.problem.batches import TensorBatches
from pactrain.problem.constant_answer import ConstantAnswer, best_constant
from pactrain.problem.losses import CallableLoss, Loss
from pactrain.problem.named_losses import LOSSES, quantile
from pactrain.runtime.gave_up import collected


def best(target: Tensor, loss: Any, *, size: int = 1000) -> Any:
    found = best_constant(TensorBatches((torch.zeros(len(target), 1), target), size), loss)
    assert found is not None
    return found


def test_scores() -> None:
    answer = ConstantAnswer(torch.tensor([0.0, 1.0, 0.5, 0.0]), torch.tensor([1.0, 2.0, 6.0]))
    assert (answer.error, answer.loss, answer.clipped(3.0), answer.clipped(9.0)) == (0.375, 3.0, 2.0, 3.0)
    assert ConstantAnswer(None, torch.tensor([1.0])).error is None


def test_classes() -> None:
    target = torch.tensor([2, 0, 2, 1, 2, 0, 2, 2])
    answer = best(target, LOSSES["cross_entropy"])
    assert answer.errors is not None
    assert answer.errors.tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
    shares = {0: 0.25, 1: 0.125, 2: 0.625}
    assert answer.losses.tolist() == pytest.approx([-math.log(shares[int(t)]) for t in target])
    assert answer.losses.dtype == torch.float64


def test_a_class_that_does_not_occur() -> None:
    answer = best(torch.tensor([0, 2, 2, 2]), LOSSES["cross_entropy"])
    assert answer.losses.tolist() == pytest.approx([-math.log(0.25)] + [-math.log(0.75)] * 3, abs=1e-10)
    assert answer.losses.tolist() != pytest.approx([-math.log(0.25)] + [-math.log(0.75)] * 3, abs=1e-13)


@pytest.mark.parametrize("counts", [(6, 2), (3, 3, 2), (5, 5, 5, 1), (2, 3), (1, 90), (1, 1, 1)])
def test_hinge(counts: tuple[int, ...]) -> None:
    """Tried are equal scores, one score higher by 1, and the logarithms of the shares."""
    target = np.repeat(np.arange(len(counts)), counts)
    shares = np.array(counts) / sum(counts)

    def mean_loss(scores: Any) -> float:
        return float(np.mean([np.maximum(0, 1 - scores[t] + np.delete(scores, t)).sum() for t in target]))

    tried = (np.zeros(len(counts)), np.eye(len(counts))[shares.argmax()], np.log(shares))
    answer = best(torch.from_numpy(target), LOSSES["hinge"])
    assert answer.loss == pytest.approx(min(map(mean_loss, tried)))
    assert answer.error == pytest.approx(1 - shares.max())


def test_scores_are_logarithms_of_shares() -> None:
    def normalised(output: Tensor, target: Tensor) -> Tensor:
        return (output.exp().sum(1) - 1).abs() + 0 * target

    def missing(output: Tensor, target: Tensor) -> Tensor:
        return (output[:, 1] - math.log(1e-12)).abs() + 0 * target

    for own in (normalised, missing):
        answer = best(torch.tensor([0, 2, 2, 2]), Loss("own", own, "classification"))
        assert answer.loss == pytest.approx(0, abs=1e-9)


def test_pixels_are_averaged_over_an_example() -> None:
    target = torch.tensor([[[0, 1], [1, 1]], [[1, 1], [0, 0]]])
    answer = best(target, LOSSES["cross_entropy"])
    assert answer.errors is not None
    assert answer.errors.tolist() == [0.25, 0.5]
    one, zero = -math.log(5 / 8), -math.log(3 / 8)
    assert answer.losses.tolist() == pytest.approx([(3 * one + zero) / 4, (one + zero) / 2])


def test_marks_that_are_left_out_count_as_the_first_class() -> None:
    ignoring = Loss("own", lambda o, t: torch.zeros(len(t)), "classification")
    answer = best(torch.tensor([-1, -1, 0, 1, 1]), ignoring)
    assert answer.errors is not None
    assert answer.errors.tolist() == [1, 1, 0, 1, 1]


def test_several_labels() -> None:
    target = torch.tensor([[1, 0], [1, 1], [1, 0], [1, 1], [1, 0]])
    answer = best(target, LOSSES["binary_cross_entropy"])
    assert answer.errors is not None
    assert answer.errors.tolist() == [0, 1, 0, 1, 0]
    there, absent = -math.log(0.4) / 2, -math.log(0.6) / 2
    assert answer.losses.tolist() == pytest.approx([absent, there, absent, there, absent], abs=1e-9)
    pixels = best(target.view(5, 1, 2), LOSSES["binary_cross_entropy"])  # of which all are taken to be there
    assert pixels.error == pytest.approx(0.3)


def test_labels_that_are_always_or_never_there() -> None:
    answer = best(torch.tensor([[1, 0]] * 3), LOSSES["binary_cross_entropy"])
    assert answer.error == 0
    assert answer.losses.tolist() == pytest.approx([1e-12] * 3, rel=1e-3, abs=0)


def test_regression() -> None:
    target = torch.tensor([1.0, 2.0, 3.0, 4.0, 40.0])
    squared = best(target, LOSSES["mse"])
    assert squared.errors is None
    assert squared.losses.tolist() == pytest.approx([(t - 10) ** 2 for t in target.tolist()])
    assert best(target, LOSSES["l1"]).losses.tolist() == [2, 1, 0, 1, 37]  # the median
    assert best(target, LOSSES["l1"], size=2).loss == 8.2
    assert best(target.long(), LOSSES["l1"]).loss == 8.2


@pytest.mark.parametrize("level", [0.05, 0.1, 0.35, 0.95])
def test_quantiles(level: float) -> None:
    """On 0, 1, …, 100 the quantiles that are tried are 5, 10, …, 95, and no constant is better for their own losses."""
    target = torch.arange(101.0)[torch.randperm(101, generator=torch.Generator().manual_seed(0))]
    answer = best(target, quantile(level))
    at = round(100 * level)
    expected = [max(level * (t - at), (level - 1) * (t - at)) for t in target.tolist()]
    assert answer.losses.tolist() == pytest.approx(expected)


def test_only_these_quantiles_are_tried() -> None:
    target = torch.arange(101.0)
    far = Loss("far", lambda o, t: (o - 97).abs() + 0 * t, "regression")
    assert best(target, far).loss == pytest.approx(2.0)
    low = Loss("low", lambda o, t: (o - 3).abs() + 0 * t, "regression")
    assert best(target, low).loss == pytest.approx(2.0)
    between = Loss("between", lambda o, t: (o - 63).abs() + 0 * t, "regression")
    assert best(target, between).loss == pytest.approx(2.0)
    few = Loss("few", lambda o, t: (o - 1).abs() + 0 * t, "regression")
    assert best(torch.tensor([9.0, 0.0, 1.0]), few).loss == 0


def test_outputs_of_several_numbers() -> None:
    target = torch.tensor([[0.0, 10.0], [2.0, 10.0], [4.0, 40.0]])
    answer = best(target, LOSSES["mse"])
    expected = ((target.numpy() - target.numpy().mean(0)) ** 2).mean(1)
    np.testing.assert_allclose(answer.losses.numpy(), expected, rtol=1e-6)

    middle = best(torch.tensor([[0.0, 10.0], [1.0, 0.0], [9.0, 90.0]]), LOSSES["l1"])
    assert middle.losses.tolist() == [0.5, 5.0, 44.0]  # medians of the columns: 1 and 10


def test_targets_that_do_not_say() -> None:
    rows = torch.zeros(4, 1)
    own = CallableLoss.of(lambda predict, batch: rows[:, 0])
    assert best_constant(TensorBatches((rows, torch.tensor([0, 1, 1, 1])), 4), own) is None
    soft = torch.full((4, 2), 0.5)
    assert best_constant(TensorBatches((rows, soft), 4), LOSSES["cross_entropy"]) is None


def test_a_loss_that_takes_outputs_of_the_network_only() -> None:
    target = torch.tensor([1.0, 2.0, 6.0])
    batches = TensorBatches((torch.zeros(3, 1), target), 8)
    column = Loss("own", lambda o, t: (o[:, 0] - t) ** 2, "regression")
    found = best_constant(batches, column, like=torch.zeros(5, 1))
    assert found is not None
    assert found.loss == pytest.approx(float(target.double().var(correction=0)))
    narrow = Loss("own", lambda o, t: (o[:, 0, 0] - t) ** 2, "regression")
    found = best_constant(batches, narrow, like=torch.zeros(5, 1, 1))
    assert found is not None
    assert found.loss == pytest.approx(float(target.double().var(correction=0)))


def test_a_loss_for_more_classes_than_occur() -> None:
    batches = TensorBatches((torch.zeros(4, 1), torch.tensor([0, 1, 1, 1])), 8)
    shapes = []

    def weighed(output: Tensor, target: Tensor) -> Tensor:
        shapes.append(tuple(output.shape))
        return torch.nn.functional.cross_entropy(output, target, torch.ones(3), reduction="none")

    found = best_constant(batches, Loss("own", weighed, "classification"), like=torch.zeros(7, 3))
    assert found is not None
    assert found.loss == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)), rel=1e-5)
    assert set(shapes) == {(3, 3)}  # in the network's own precision, after float64 was refused
    for like in (None, torch.zeros(7), torch.zeros(7, 1)):
        assert best(torch.tensor([0, 1, 1, 1]), LOSSES["cross_entropy"]).loss == pytest.approx(0.5623351)
        plain = best_constant(batches, LOSSES["cross_entropy"], like=like)
        assert plain is not None
        assert plain.loss == pytest.approx(0.5623351)


def test_a_loss_that_takes_no_constant_is_told() -> None:
    def never(*_: Tensor) -> Tensor:
        raise ValueError("not today")

    batches = TensorBatches((torch.zeros(4, 1), torch.tensor([0, 1, 1, 1])), 8)
    with collected() as notes:
        found = best_constant(batches, Loss("own", never, "classification"))
    assert found is not None
    assert (found.error, found.losses, found.loss, found.clipped(1.0)) == (0.25, None, None, None)
    assert "not today" in notes[0]
    with collected() as notes:
        assert best_constant(batches, LOSSES["cross_entropy"]) is not None
    assert notes == []
    short = best_constant(batches, LOSSES["cross_entropy"], losses=False)
    assert short is not None
    assert (short.error, short.losses) == (0.25, None)


def test_rows_with_several_targets_and_class_numbers_in_floating_point() -> None:
    assert best(torch.tensor([[0, 1], [1, 1]]), LOSSES["cross_entropy"]).several
    assert not best(torch.tensor([0, 1]), LOSSES["cross_entropy"]).several
    assert best(torch.tensor([0.0, 1.0, 1.0, 1.0]), LOSSES["cross_entropy"]).error == 0.25
    rows = TensorBatches((torch.zeros(2, 1), torch.tensor([0.5, 1.0])), 8)
    assert best_constant(rows, LOSSES["cross_entropy"]) is None


def test_losses_below_zero_do_not_count_for_the_constant_answer() -> None:
    assert ConstantAnswer(None, torch.tensor([-3.0, 0.5, 7.0])).clipped(2.0) == pytest.approx(2.5 / 3)
