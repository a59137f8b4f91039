"""Targets that a loss cannot take are named, with what to do."""

import pytest
import torch
from torch import Tensor

from pactrain.problem.target_checks import check_classes, check_labels
from pactrain.runtime.errors import DataError

SCORES = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("output", "target"),
    [
        (SCORES, torch.tensor([0, 2])),
        (SCORES, torch.full((2, 3), 1 / 3)),  # probabilities
        (torch.zeros(2, 3, 4), torch.tensor([[0, 1, 2, -100], [-100, 0, 0, 0]])),  # tokens, some of them ignored
    ],
)
def test_classes_that_fit_pass(output: Tensor, target: Tensor) -> None:
    check_classes(output, target, "cross_entropy", -100)


@pytest.mark.parametrize(
    ("output", "target", "message"),
    [
        (torch.zeros(2, 1), torch.tensor([0, 1]), "one score for each class, two at least"),
        (SCORES, torch.tensor([[0], [1]]), r"the target has shape \(2, 1\)"),
        (SCORES, torch.tensor([0, 3]), "the classes are 0 to 3; a network with 3 scores knows 0 to 2"),
        (SCORES, torch.tensor([-1, 0]), "the classes are -1 to 0"),
        (torch.zeros(2, 3, 2), torch.tensor([[0, 1], [-100, -100]]), "row 1 of a batch has no label but -100"),
    ],
)
def test_classes_that_do_not_fit_are_named(output: Tensor, target: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_classes(output, target, "cross_entropy", -100)


def test_labels_are_there_or_not() -> None:
    check_labels(torch.tensor([0.0, 0.5, 1.0]))
    with pytest.raises(DataError, match=r"go from -0\.5 to 2"):
        check_labels(torch.tensor([-0.5, 2.0]))
