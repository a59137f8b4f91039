"""How the classes are shared out among the examples, and what an answer that knows no more than that would lose."""

import math
from collections.abc import Sequence

import torch

from pactrain.batches import Batches, TensorBatches
from pactrain.losses import LOSSES, AnyLoss, Loss


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
