"""However a step is computed, its gradient is that of the batch's mean loss."""

import pytest
import torch
from torch import nn

from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.errors import DataError, PactrainError, TrainingError
from pactrain.training.precision import Computing, pieces

X, Y = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 1, 0, 1, 0, 0])
CE = LOSSES["cross_entropy"]


def gradient(how: Computing) -> tuple[float, torch.Tensor]:
    torch.manual_seed(0)
    network = nn.Linear(3, 2)
    value = how.backward(CE, network, (X, Y))
    assert network.weight.grad is not None
    return value, network.weight.grad


@pytest.mark.parametrize("accumulate", [2, 3, 20])
def test_pieces_give_the_gradient_of_the_whole(accumulate: int) -> None:
    whole, parts = gradient(Computing()), gradient(Computing(accumulate=accumulate))
    assert parts[0] == pytest.approx(whole[0], rel=1e-6)
    torch.testing.assert_close(parts[1], whole[1])


def test_pieces_hold_every_row_once() -> None:
    found = pieces((X, Y), 3)
    assert [number for _, number in found] == [2, 2, 3]
    assert torch.equal(torch.cat([part[0] for part, _ in found]), X)
    assert len(pieces((X, Y), 100)) == 7
    with pytest.raises(DataError, match="one row per example"):
        pieces((X, "text"), 2)


def test_bf16_rounds_the_forward_pass_and_not_the_gradients_type() -> None:
    value, grad = gradient(Computing(precision="bf16"))
    exact, _ = gradient(Computing())
    assert value != exact
    assert value == pytest.approx(exact, rel=0.02)
    assert grad.dtype == torch.float32


def test_a_gradient_is_shortened_only_if_it_is_too_long() -> None:
    weight = nn.Parameter(torch.zeros(2))
    for limit, expected in ((1.0, [0.6, 0.8]), (10.0, [3.0, 4.0]), (None, [3.0, 4.0])):
        weight.grad = torch.tensor([3.0, 4.0])
        Computing(clip_norm=limit).clip([weight])
        torch.testing.assert_close(weight.grad, torch.tensor(expected))


def test_mistakes_are_named() -> None:
    for words, options in (("precision='fp16'", {"precision": "fp16"}), ("clip_norm=0", {"clip_norm": 0})):
        with pytest.raises(PactrainError, match=words):
            Computing(**options)
    with pytest.raises(TrainingError, match="no gradient with respect to the weights"):
        Computing().losses(CE, nn.Linear(3, 2).requires_grad_(False), (X, Y))
