"""The head on a text encoder."""

import torch

from pactrain.models.text import text_head


def test_the_head_has_dropout_only_when_asked() -> None:
    assert isinstance(text_head(4, 2), torch.nn.Linear)
    head = text_head(4, 2, dropout=0.5)
    assert isinstance(head, torch.nn.Sequential)
    assert torch.equal(head.eval()(torch.ones(1, 4)), text_head(4, 2)(torch.ones(1, 4)))
