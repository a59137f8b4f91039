"""Scores of a network: mean loss, accuracy or rmse, calibration; class shares and what they alone would score."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import LOSSES, AnyLoss, LabelsLoss, Loss, per_example
from pactrain.problem.module_modes import evaluating

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


BINS = 15
"""Bins of equal width into which confidences are put, the usual number."""


@torch.no_grad()
def calibration(model: nn.Module, batches: Iterable[Any], loss: AnyLoss) -> dict[str, float]:
    """`nll` in nats and `ece` of a network that names one class an example; nothing for any other."""
    if not isinstance(loss, Loss) or loss.probabilities is None or isinstance(loss, LabelsLoss):
        return {}
    nll, table, n = 0.0, torch.zeros(BINS, 2, dtype=torch.float64), 0
    with evaluating(model):
        for batch in batches:
            output, target = loss.read(model, batch)
            chances = loss.probabilities(output.double())
            nll -= float(chances.gather(1, target.unsqueeze(1)).clamp(min=torch.finfo(torch.float64).tiny).log().sum())
            table += _table(chances, target).cpu()
            n += target.numel()
    # the weights of the bins cancel: Σ (n_b/n) |Σ confidence/n_b − right/n_b| = Σ |Σ confidence − right| / n
    return {"nll": nll / n, "ece": float((table[:, 0] - table[:, 1]).abs().sum()) / n} if n else {}


def _table(chances: Tensor, target: Tensor) -> Tensor:
    """For each bin of confidences: their sum, and how many of the answers are right."""
    confidence, answer = chances.max(1)
    bins = (confidence * BINS).long().clamp(0, BINS - 1).flatten()
    right = (answer == target).to(confidence.dtype).flatten()
    return torch.stack([torch.bincount(bins, w, minlength=BINS) for w in (confidence.flatten(), right)], dim=1)


def class_shares(batches: Batches, loss: AnyLoss) -> list[float] | None:
    """Shares of the classes, where the data is held as tensors and every example counts the same in a named loss."""
    if not (isinstance(batches, TensorBatches) and isinstance(loss, Loss) and loss.name in LOSSES):
        return None
    target = batches.tensors[-1]
    if loss.task != "classification" or target.is_floating_point() or target.ndim != 1:
        return None
    counts = torch.bincount(target - target.min())
    return (counts.double() / len(target)).tolist()


def entropy(shares: Sequence[float]) -> float:
    """The cross-entropy of an answer that knows the shares of the classes and nothing else, in nats."""
    return -sum(share * math.log(share) for share in shares if share > 0)


def chance(batches: Batches, loss: AnyLoss) -> float:
    """The same for some data and a loss; infinite where the loss is another, or the shares are not known."""
    shares = class_shares(batches, loss)
    return entropy(shares) if shares and isinstance(loss, Loss) and loss.name == "cross_entropy" else math.inf
