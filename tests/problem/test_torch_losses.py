"""Losses of torch, with one value per example instead of their mean."""

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.problem.label_losses import LabelsLoss
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.torch_losses import from_torch
from pactrain.runtime.errors import PactrainError

G = torch.Generator().manual_seed(0)
SCORES, CLASSES = torch.randn(6, 3, generator=G), torch.tensor([0, 1, 2, 0, 1, 2])
LOGITS, FLAGS = torch.randn(6, generator=G), torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (nn.CrossEntropyLoss(), "cross_entropy"),
        (nn.CrossEntropyLoss(reduction="sum"), "cross_entropy"),
        (nn.CrossEntropyLoss, "cross_entropy"),
        (F.cross_entropy, "cross_entropy"),
        (partial(F.cross_entropy, reduction="mean"), "cross_entropy"),
        (nn.BCEWithLogitsLoss(), "binary_cross_entropy"),
        (nn.MSELoss(), "mse"),
        (F.l1_loss, "l1"),
    ],
)
def test_what_is_one_of_ours_is_ours(given: Any, name: str) -> None:
    assert from_torch(given) is LOSSES[name]


@pytest.mark.parametrize(
    ("given", "output", "target"),
    [
        (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0])), SCORES, CLASSES),
        (nn.CrossEntropyLoss(label_smoothing=0.2), SCORES, CLASSES),
        (partial(F.cross_entropy, label_smoothing=0.2), SCORES, CLASSES),
        (nn.NLLLoss(), SCORES.log_softmax(1), CLASSES),
        (nn.MultiMarginLoss(p=2), SCORES, CLASSES),
        (nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)), LOGITS, FLAGS),
        (nn.BCELoss(), LOGITS.sigmoid(), FLAGS),
        (nn.HuberLoss(delta=0.3), LOGITS, FLAGS),
        (nn.SmoothL1Loss(beta=0.3), LOGITS, FLAGS),
        (nn.PoissonNLLLoss(), LOGITS, FLAGS),
        (nn.SoftMarginLoss(), LOGITS, 2 * FLAGS - 1),
        (nn.MultiLabelSoftMarginLoss(), SCORES, (SCORES > 0.1).float()),
    ],
)
def test_the_settings_are_kept_and_each_example_has_its_own_value(given: Any, output: Tensor, target: Tensor) -> None:
    loss = from_torch(given)
    assert loss is not None
    found = loss(nn.Identity(), (output, target))
    function = given if isinstance(given, partial) else type(given)(**_settings(given), reduction="none")
    each = torch.stack([function(output[i : i + 1], target[i : i + 1]).reshape(()) for i in range(len(output))])
    assert torch.allclose(found, each)
    assert loss.name not in LOSSES  # weights and smoothing change what a bound on the loss means


def _settings(module: nn.Module) -> dict[str, Any]:
    names = ("weight", "pos_weight", "label_smoothing", "p", "delta", "beta")
    return {name: getattr(module, name) for name in names if getattr(module, name, None) is not None}


def test_an_ignored_index_and_a_column_beside_a_vector() -> None:
    tokens = torch.tensor([[0, 9], [1, 2], [9, 1]])
    scores = torch.randn(3, 3, 2, generator=G)
    loss = from_torch(nn.CrossEntropyLoss(ignore_index=9))
    assert loss is not None
    expected = F.cross_entropy(scores, tokens, ignore_index=9, reduction="none").sum(1) / torch.tensor([1.0, 2.0, 1.0])
    losses, errors = loss.with_score(nn.Identity(), (scores, tokens))
    assert torch.allclose(losses, expected)
    wrong = (scores.argmax(1) != tokens) & (tokens != 9)
    assert errors is not None
    assert torch.allclose(errors, wrong.sum(1) / torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64))
    huber = from_torch(nn.HuberLoss())
    assert huber is not None
    assert huber(nn.Identity(), (LOGITS[:, None], FLAGS)).shape == (6,)  # torch would make 36 values of them


def test_probabilities_are_wrong_below_a_half() -> None:
    loss = from_torch(nn.BCELoss())
    assert isinstance(loss, LabelsLoss)
    _, errors = loss.with_score(nn.Identity(), (torch.tensor([0.4, 0.6]), torch.tensor([1.0, 1.0])))
    assert errors.tolist() == [1.0, 0.0]


def test_other_functions_of_torch_are_refused_and_own_ones_left_alone() -> None:
    with pytest.raises(PactrainError, match="relu is no loss of an output and a target alone"):
        from_torch(F.relu)
    assert from_torch(lambda output, target: output) is None
    assert from_torch(None) is None


def test_a_divergence_is_summed_over_its_classes() -> None:
    shares = torch.randn(6, 3, generator=G).softmax(1)
    for given in (nn.KLDivLoss(reduction="batchmean"), F.kl_div):
        loss = from_torch(given)
        assert loss is not None
        losses, errors = loss.with_score(nn.Identity(), (SCORES.log_softmax(1), shares))
        expected = F.kl_div(SCORES.log_softmax(1), shares, reduction="batchmean")
        torch.testing.assert_close(losses.mean(), expected)
        assert errors is not None
        assert errors.tolist() == (SCORES.argmax(1) != shares.argmax(1)).double().tolist()


@pytest.mark.parametrize(
    "given", [nn.GaussianNLLLoss(), F.gaussian_nll_loss, nn.CTCLoss(), nn.CosineEmbeddingLoss(), nn.TripletMarginLoss]
)
def test_losses_of_more_than_an_output_and_a_target_are_asked_for(given: Any) -> None:
    with pytest.raises(PactrainError, match=r"of an output and a target alone; write a function of both"):
        from_torch(given)
