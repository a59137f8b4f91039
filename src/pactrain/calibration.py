"""Do the probabilities mean what they say?  Negative log-likelihood and expected calibration error."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.losses import AnyLoss, LabelsLoss, Loss
from pactrain.modes import evaluating

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
