"""What is said where few rows are trained for a certificate."""

import pytest
import torch
from torch import nn

import pactrain


@pytest.mark.parametrize(("bound", "prior_data", "told"), [("kl", 0.0, True), ("kl", 0.5, False), ("auto", 0.0, False)])
def test_few_rows_want_a_prior_of_their_own(bound: str, prior_data: float, told: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(60, 3)
    rows = (x, (x[:, 0] > 0).long())
    result = pactrain.fit(nn.Linear(3, 2), rows, bound=bound, prior_data=prior_data, budget="1 epoch")
    assert any("prior_data=0.5" in note for note in result.notes) is told
