"""Scores that need all answers at once, against scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn import metrics

from pactrain.problem.answers import ClassAnswers, NumberAnswers, answers_of
from pactrain.problem.losses import CallableLoss
from pactrain.problem.named_losses import LOSSES


def classes(n: int = 200, count: int = 4) -> ClassAnswers:
    """Answers better than chance, classes of different sizes, and ties among the scores."""
    g = np.random.default_rng(0)
    target = g.choice(count, n, p=[0.6, 0.2, 0.15, 0.05])
    scores = np.round(np.exp(g.normal(size=(n, count)) + 1.5 * np.eye(count)[target]), 1) + 1e-3
    return ClassAnswers(target, scores / scores.sum(1, keepdims=True), True)


def test_scores_of_classes_are_those_of_scikit_learn() -> None:
    answers = classes()
    found = answers.further_scores()
    target, named = answers.target, answers.answer
    assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(target, named))
    assert found["f1"] == pytest.approx(metrics.f1_score(target, named, average="macro"))
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(target, answers.scores, multi_class="ovr"))
    assert found["recall"] == pytest.approx(list(metrics.recall_score(target, named, average=None)))
    assert (answers.confusion() == metrics.confusion_matrix(target, named)).all()


def test_a_class_without_rows_counts_for_nothing() -> None:
    scores = np.eye(3)[[0, 1, 1, 2]]
    found = ClassAnswers(np.array([0, 1, 1, 1]), scores, True).further_scores()
    assert found["recall"] == [1.0, pytest.approx(2 / 3), None]
    assert found["balanced_accuracy"] == pytest.approx(5 / 6)
    alone = ClassAnswers(np.array([1, 1]), scores[:2], True).further_scores()
    assert "auc" not in alone


def test_scores_of_numbers_are_those_of_scikit_learn() -> None:
    g = np.random.default_rng(0)
    target = g.normal(3, 2, 50)
    answers = NumberAnswers(target, target + g.normal(size=50))
    found = answers.further_scores()
    assert found["r2"] == pytest.approx(metrics.r2_score(target, answers.answer))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(target, answers.answer))
    assert found["spread"] == pytest.approx(target.std())
    assert "r2" not in NumberAnswers(np.ones(3), np.zeros(3)).further_scores()


def test_confusions_come_by_how_often_they_are_made() -> None:
    target, named = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 0, 1, 2, 2])
    assert ClassAnswers(target, np.eye(3)[named], True).most_confused() == [(0, 1, 2), (1, 2, 1)]


def test_answers_are_the_networks_own_in_the_targets_unit() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = answers_of(torch.nn.Identity(), [(x, torch.tensor([0, 0]))], LOSSES["cross_entropy"])
    assert isinstance(found, ClassAnswers)
    assert found.scores == pytest.approx(x.double().softmax(1).numpy())
    numbers = answers_of(torch.nn.Identity(), [(x[:, :1], torch.tensor([2.0, 4.0]))], _in_units(10.0))
    assert isinstance(numbers, NumberAnswers)
    assert numbers.target.tolist() == [20.0, 40.0]
    assert numbers.answer.tolist() == [10.0, 0.0]


def _in_units(unit: float):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(LOSSES["mse"], unit=unit)


def test_one_label_that_is_there_or_not_makes_two_classes() -> None:
    output = torch.tensor([[2.0], [-1.0]])
    found = answers_of(torch.nn.Identity(), [(output, torch.tensor([[1.0], [1.0]]))], LOSSES["binary_cross_entropy"])
    assert isinstance(found, ClassAnswers)
    assert found.answer.tolist() == [1, 0]
    assert found.target.tolist() == [1, 1]
    assert found.scores[:, 1] == pytest.approx(output[:, 0].double().sigmoid().numpy())


def test_there_are_none_where_a_row_has_no_single_target() -> None:
    model, x = torch.nn.Identity(), torch.zeros(2, 3, 4)
    pixels = [(x, torch.zeros(2, 4, dtype=torch.long))]
    assert answers_of(model, pixels, LOSSES["cross_entropy"]) is None
    assert answers_of(model, [(x, x)], LOSSES["mse"]) is None
    assert answers_of(model, [(x[:, 0], x[:, 0])], LOSSES["binary_cross_entropy"]) is None
    assert answers_of(model, [(x, x)], CallableLoss.of(lambda predict, batch: predict(batch[0]))) is None
