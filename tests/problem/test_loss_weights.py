"""Weights of classes and of rows: in the loss, in what the certificate says, and in what is compared with test rows."""

from typing import Any

import pandas
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pactrain
from pactrain.problem.batches import TensorBatches
from pactrain.problem.loss_weights import weigh_classes
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.errors import PactrainError
from tests.zoo import build, rows

X, Y = rows(96)
ALL = TensorBatches((X, Y), 96)


@pytest.mark.parametrize("given", [{1: 3.0}, [1.0, 3.0, 1.0], torch.tensor([1.0, 3.0, 1.0])])
def test_classes_by_weight(given: object) -> None:
    model = build("mlp")
    loss = weigh_classes(LOSSES["cross_entropy"], given, ALL)  # type: ignore[arg-type]
    expected = F.cross_entropy(model(X), Y, weight=torch.tensor([1.0, 3.0, 1.0]), reduction="none")
    assert torch.allclose(loss(model, (X, Y)), expected)


def test_balanced_classes_weigh_the_same_together() -> None:
    loss = weigh_classes(LOSSES["cross_entropy"], "balanced", ALL)
    values = loss(nn.Sequential(nn.Linear(6, 3)), (X, Y)).detach()
    plain = LOSSES["cross_entropy"]
    model = nn.Linear(6, 3)
    weights = loss(model, (X, Y)) / plain(model, (X, Y))
    sums = [float(weights[label == Y].sum().detach()) for label in range(3)]
    assert sums == pytest.approx([len(X) / 3] * 3)
    assert len(values) == len(X)


def test_what_the_certificate_says() -> None:
    result = pactrain.fit(build("mlp"), (X, Y), class_weight="balanced", budget="3 epochs")
    assert result.certificate.label != "certified" if hasattr(result.certificate, "label") else True
    assert any("class weights were computed" in c.reason for c in result.certificate.caveats)
    assert "weighs classes or examples" in str(result.certificate)
    fixed = pactrain.fit(build("mlp"), (X, Y), loss=nn.CrossEntropyLoss(weight=torch.ones(3)), budget="3 epochs")
    assert not any("class weights" in c.reason for c in fixed.certificate.caveats)
    assert "weighs classes or examples" in str(fixed.certificate)


def test_rows_without_weight_are_not_learned() -> None:
    wrong = Y.clone()
    wrong[:30] = (Y[:30] + 1) % 3
    weight = torch.ones(96)
    weight[:30] = 0.0
    result = pactrain.fit(build("mlp"), (X, wrong), sample_weight=weight, test=rows(200, seed=5), budget="150 epochs")
    right = (result.model(X[:30]).argmax(1) == Y[:30]).double().mean()
    assert right > 0.7
    assert result.metrics["test"]["n"] == 200
    assert "weighs classes or examples" in str(result.certificate)


def test_test_rows_that_were_trained_on_are_found_whatever_their_weights() -> None:
    result = pactrain.fit(build("mlp"), (X, Y), sample_weight=torch.rand(96), test=(X, Y), budget="3 epochs")
    assert "96 test rows are also in the training data" in str(result.certificate)


def test_weights_that_do_not_fit() -> None:
    def refused(words: str, **weights: Any) -> None:
        with pytest.raises(PactrainError, match=words):
            pactrain.fit(build("mlp"), (X, Y), budget="1 epoch", **weights)

    refused("there are 2 class weights, and 3 classes", class_weight=[1.0, 2.0])
    refused("'balance' is not known", class_weight="balance")
    refused("none below zero", class_weight=[1.0, -1.0, 1.0])
    refused(r"shape \(5,\); there are 96 training rows", sample_weight=torch.ones(5))
    refused("none below zero", sample_weight=-torch.ones(96))
    with pytest.raises(PactrainError, match="multiply the losses"):
        pactrain.fit(build("mlp"), [(X, Y)], sample_weight=torch.ones(96))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"class_weight": {"a": 5.0}}, "classes are numbered from 0"),
        ({"class_weight": {-1: 5.0}}, "classes are numbered from 0"),
        ({"class_weight": [0.0, 0.0, 0.0]}, "class_weight must be a vector of finite numbers"),
        ({"sample_weight": "balanced"}, "sample_weight must hold numbers"),
        ({"sample_weight": torch.ones(96, 1)}, r"its shape is \(96, 1\)"),
    ],
)
def test_weights_of_the_wrong_kind(options: Any, words: str) -> None:
    with pytest.raises(PactrainError, match=words):
        pactrain.fit(build("mlp"), (X, Y), budget="1 epoch", **options)


def test_weights_of_any_container_and_of_ignored_pixels() -> None:
    weights = torch.rand(96, generator=torch.Generator().manual_seed(1))
    series = pandas.Series(weights.numpy(), index=range(5, 101))
    results = [pactrain.fit(build("mlp"), (X, Y), budget="2 epochs", sample_weight=w) for w in (weights, series)]
    assert results[0].metrics["train"] == results[1].metrics["train"]
    with pytest.raises(PactrainError, match="class weights need one class per example, not probabilities"):
        pactrain.fit(build("mlp"), (X, F.one_hot(Y, 3) * 0.4 + 0.2), loss="cross_entropy", class_weight=[1.0, 2.0, 3.0])
    pixels = torch.stack([Y, torch.full_like(Y, 255)], 1)
    loss = nn.CrossEntropyLoss(ignore_index=255)
    model = nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (3, 2)))
    result = pactrain.fit(model, (X, pixels), loss=loss, class_weight=[1.0, 2.0, 3.0], budget="2 epochs")
    assert result.metrics["train"]["accuracy"] > 0.2
