"""Gradients of single examples, together or one by one."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pactrain.distributions.posterior import Posterior
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import TensorBatches
from pactrain.rules.gamma.example_kernel import NotLinearLayers
from pactrain.rules.gamma.trained_leave_one_out import LeaveOneOut
from tests.rules.gamma.left_out import GAMMA, asked, trained
from tests.zoo import build, rows


def refuse(*_: Any) -> None:
    raise NotLinearLayers


def test_examples_that_share_a_forward_pass_and_come_in_any_order() -> None:
    posterior, _, x, y = trained(3, "cross_entropy")
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(3))

    def loss(predict: Any, batch: Any) -> Tensor:
        inputs, places, labels = batch
        return F.cross_entropy(predict(inputs)[places], labels, reduction="none")

    padded = torch.cat([x, torch.ones(5, 4, dtype=x.dtype)])  # rows of the output that no example looks at
    apart = asked(posterior, (x, y), "cross_entropy").estimate(GAMMA).loss
    assert asked(posterior, [(padded, order, y[order])], loss).estimate(GAMMA).loss == pytest.approx(apart, rel=1e-6)


@pytest.mark.parametrize("name", ["mlp", "tied", "frozen", "unused", "batchnorm"])
def test_factors_give_what_single_examples_give_and_nothing_is_changed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(name)
    posterior = Posterior(model)
    before = copy.deepcopy(model.state_dict())
    batches, loss = TensorBatches(rows(), 16), as_loss(None, rows())
    together = LeaveOneOut(posterior, batches, loss, len(batches), seed=0)
    by_rows = together.estimate(5.0).loss
    monkeypatch.setattr("pactrain.rules.gamma.example_kernel.factors_of", refuse)
    assert together.estimate(5.0).loss == pytest.approx(by_rows, rel=1e-4)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
