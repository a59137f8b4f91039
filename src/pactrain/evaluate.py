"""Measuring a network: mean loss, and accuracy or rmse where the loss says what kind of target it has."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from pactrain.losses import AnyLoss, Loss, per_example
from pactrain.modes import evaluating

Scores = dict[str, float]


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[Any], loss: AnyLoss) -> Scores:
    """`loss`, the number of examples `n`, and `accuracy` or `rmse` of the network at its present weights, in eval mode."""
    with evaluating(model):
        return measure(model, batches, loss)


@torch.no_grad()
def measure(model: nn.Module, batches: Iterable[Any], loss: AnyLoss) -> Scores:
    """The same, in the modes the submodules are in."""
    total_loss, total_score, n = 0.0, 0.0, 0
    for batch in batches:
        if isinstance(loss, Loss):
            losses, scores = loss.with_score(model, batch)
            total_score += float(scores.double().sum())
        else:
            losses = per_example(loss, model, batch)
        total_loss += float(losses.double().sum())
        n += len(losses)
    result: Scores = {"loss": total_loss / n if n else math.nan, "n": n}
    if isinstance(loss, Loss) and n:
        if loss.task == "classification":
            result["accuracy"] = 1.0 - total_score / n
        else:
            result["rmse"] = math.sqrt(total_score / n)
    return result
