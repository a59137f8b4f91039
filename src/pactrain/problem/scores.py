"""Scores of a network: mean loss, accuracy or rmse, calibration; class shares and what they alone would score."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.batches import Batches
from pactrain.problem.losses import CLIPPED, Loss
from pactrain.problem.module_modes import evaluating
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused, refusing

Scores = dict[str, float]


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[Any], loss: Loss) -> Scores:
    """`loss`, the number of examples `n`, and `accuracy` or `rmse` of the network at its present weights, in eval mode."""
    with evaluating(model):
        return measure(model, batches, loss)


@torch.no_grad()
def measure(model: nn.Module, batches: Iterable[Any], loss: Loss) -> Scores:
    """`loss`, `n`, and `accuracy` or `rmse` as in `evaluate`, but in the modes the submodules are in."""
    total_loss, total_score, n = 0.0, 0.0, 0
    for batch in batches:
        losses, scores = loss.with_score(model, batch)
        if scores is not None:
            total_score += float(scores.double().sum())
        total_loss += float(losses.double().sum())
        n += len(losses)
    result: Scores = {"loss": total_loss / n if n else math.nan, "n": n}
    if n and loss.task == "classification":
        result["accuracy"] = 1.0 - total_score / n
    elif n and loss.task == "regression":
        result["rmse"] = math.sqrt(total_score / n)
    return result


Metrics = Mapping[str, Callable[[Tensor, Tensor], Any]]
"""Functions of the network's outputs and the targets of a whole set, by name."""

OURS = ("loss", "n", "accuracy", "rmse", "nll", "ece")
"""Names of scores that are measured anyway."""


@torch.no_grad()
def own_scores(model: nn.Module, batches: Iterable[Any], loss: Loss, metrics: Metrics) -> Scores:
    """The user's own metrics of the network at its present weights, in the modes the submodules are in.

    Raises:
        PactrainError: A metric fails, or does not give a number.
    """
    if not metrics:
        return {}
    pairs = [loss.read(model, batch) for batch in batches]
    unit = loss.unit if loss.task == "regression" else 1.0
    output, target = (torch.cat([pair[i] for pair in pairs]).cpu() for i in (0, 1))
    found = {}
    for name, metric in metrics.items():
        try:
            found[name] = float(refusing(metric)(output * unit, target * unit if unit != 1 else target))
        except (Refused, TypeError, ValueError, RuntimeError) as error:
            raise PactrainError(
                f"the metric {name!r} failed on outputs of shape {tuple(output.shape)} and targets of shape "
                f"{tuple(target.shape)} ({error}); it must take both and return a number"
            ) from error
    return found


BINS = 15
"""Bins of equal width into which confidences are put, the usual number."""


@torch.no_grad()
def calibration(model: nn.Module, batches: Iterable[Any], loss: Loss) -> dict[str, float]:
    """`nll` in nats and `ece` of a network that predicts classes with probabilities; empty for any other."""
    if loss.probabilities is None:
        return {}
    nll, table, n = 0.0, torch.zeros(BINS, 2, dtype=torch.float64, device="cpu"), 0
    with evaluating(model):
        for batch in batches:
            found = _chances(model, batch, loss)
            if found is None:
                return {}
            chances, target = found
            nll -= float(chances.gather(1, target.unsqueeze(1)).clamp(min=torch.finfo(torch.float64).tiny).log().sum())
            table += _table(chances, target).cpu()
            n += target.numel()
    # the weights of the bins cancel: Σ (n_b/n) |Σ confidence/n_b − right/n_b| = Σ |Σ confidence − right| / n
    return {"nll": nll / n, "ece": float((table[:, 0] - table[:, 1]).abs().sum()) / n} if n else {}


def _chances(model: nn.Module, batch: Any, loss: Loss) -> tuple[Tensor, Tensor] | None:
    """One row of probabilities per label, and the classes; None where an example has several labels, or soft ones."""
    output, target = loss.read(model, batch)
    assert loss.probabilities is not None
    if loss.several_labels:
        if target.shape[1:].numel() != 1 or not bool(((target == 0) | (target == 1)).all()):
            return None
        there = loss.probabilities(output.double()).reshape(-1)
        return torch.stack([1 - there, there], dim=1), target.reshape(-1).long()
    if target.is_floating_point():
        return None
    if loss.class_dim != 1 and output.ndim > 2:
        output = output.movedim(1, loss.class_dim)
    chances = loss.probabilities(output.double()).movedim(loss.class_dim, -1)
    labelled = target != loss.ignore
    return chances[labelled], target[labelled]


def _table(chances: Tensor, target: Tensor) -> Tensor:
    """For each bin of confidences: their sum, and how many of the answers are right."""
    confidence, answer = chances.max(1)
    bins = (confidence * BINS).long().clamp(0, BINS - 1)
    right = (answer == target).to(confidence.dtype)
    return torch.stack([torch.bincount(bins, w, minlength=BINS) for w in (confidence, right)], dim=1)


def class_shares(batches: Batches, loss: Loss) -> list[float] | None:
    """Shares of the classes, where the data is held as tensors and every example counts the same in a named loss."""
    if batches.table is None or loss.name not in LOSSES:
        return None
    target = batches.table.tensors[-1]
    if loss.several_labels and target.shape[1:].numel() == 1 and torch.equal(target, target.round()):
        target = target.reshape(-1).long()
    if loss.task != "classification" or target.is_floating_point() or target.ndim != 1:
        return None
    counts = torch.bincount(target - target.min())
    return (counts.double() / len(target)).tolist()


def entropy(shares: Sequence[float]) -> float:
    """The cross-entropy of an answer that knows the shares of the classes and nothing else, in nats."""
    return -sum(share * math.log(share) for share in shares if share > 0)


def chance(batches: Batches, loss: Loss) -> float:
    """Mean cross-entropy, in nats, of answering every row with the shares of the classes; infinite for other losses, or where
    the shares are not known."""
    shares = class_shares(batches, loss)
    return entropy(shares) if shares and loss.name in CLIPPED else math.inf
