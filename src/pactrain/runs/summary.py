"""Scores, notes and metrics of a finished training."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.bounds.moment import Moment
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import Loss, loss_name
from pactrain.problem.read import Problem
from pactrain.problem.scores import Scores, calibration, entropy, evaluate
from pactrain.training.trainer import Trainer

INFORMED = 0.9
"""Below this part of the classes' entropy the probabilities have learnt something, whatever the accuracy."""

LARGE = 30.0
"""Size of a column of inputs, or of targets that are numbers, above which the user is told to scale them.  A network that was made for
inputs around one sees little but the largest of them, and the rules, which ask the untrained network, see no more than it does.  Also of the
mean of a column in its deviations."""

FLAT = 1e-6
"""Deviation of a column, in units of its mean, below which it is a constant but for rounding."""


def final_scores(model: nn.Module, problem: Problem) -> dict[str, Scores]:
    """Loss, accuracy or rmse, and calibration of the mean network, on each set of the data."""
    sets = {"train": problem.batches} | ({} if problem.test is None else {"test": problem.test})
    return {
        name: evaluate(model, batches.ordered(), problem.loss) | calibration(model, batches.ordered(), problem.loss)
        for name, batches in sets.items()
    }


def notes_on(train: Scores, problem: Problem, given: Problem, *, interrupted: bool) -> list[str]:
    """What the user should know beside the numbers.  `given` is the problem in the units that it came in."""
    notes = []
    shares = problem.class_shares()
    majority = max(shares, default=1.0)
    learnt = train.get("nll", math.inf) < INFORMED * entropy(
        shares
    )  # rare classes may be told apart and yet never named
    if interrupted:
        notes.append("Training was interrupted; this is the state it had reached, and it can be resumed.")
    if majority < 1 and train["accuracy"] <= majority + 0.01 and not learnt:
        notes.append(
            f"The network predicts no better than always naming the largest class ({100 * majority:.1f} % of the training "
            "data): it has stayed at its prior. Check the scale of the inputs and that the labels belong to them."
        )
    notes += _notes_on_scales(problem, given)
    if problem.trained_on is not problem.loss:
        name = loss_name(problem.trained_on)
        notes.append(f"Trained on {name}: the loss brought to [0, 1], as this bound needs it.")
    return notes


def _notes_on_scales(problem: Problem, given: Problem) -> list[str]:
    """Of tables whose inputs or targets are not of the size that networks are made for, in the units that they were trained in."""
    batches, came, loss = problem.batches, given.batches, problem.loss
    if not isinstance(batches, TensorBatches) or not isinstance(came, TensorBatches):
        return []
    x, y = batches.tensors[0], batches.tensors[-1]
    notes, how = [], "pactrain train and pactrain.sklearn do so themselves"
    if len(batches.tensors) == 2 and x.ndim == 2 and x.is_floating_point():
        column, size = _largest(_size(x))
        if size > LARGE:
            notes.append(
                f"Column {column} of the inputs has values around {float(_size(came.tensors[0])[column]):.3g}: a network learns better "
                f"from columns of about the same size, near one. Scale them first (sklearn's StandardScaler, say); {how}."
            )
        means, deviations = x.mean(0).abs(), x.std(0, correction=0)
        constant = deviations <= FLAT * means
        column, offset = _largest(torch.where(constant, 0.0, means / deviations))
        if offset > LARGE:
            notes.append(
                f"Column {column} of the inputs hardly varies beside its mean, which is {offset:.3g} times its deviation. "
                f"Subtract means first (sklearn's StandardScaler, say); {how}."
            )
    numbers = isinstance(loss, Loss) and loss.task == "regression" and y.is_floating_point() and y.numel()
    if numbers and float(_size(y.reshape(-1, 1))) > LARGE:
        notes.append(
            f"The targets have values around {float(_size(came.tensors[-1].reshape(-1, 1))):.3g}, and an untrained network "
            "answers with values around one: training has a long way to go before it learns anything. Subtract their mean and "
            f"divide by their deviation first; {how}."
        )
    return notes


def _size(x: Tensor) -> Tensor:
    """Root mean square of each column."""
    return x.square().mean(0).sqrt()


def _largest(values: Tensor) -> tuple[int, float]:
    return int(values.argmax()), float(values.max())


def metrics_of(trainer: Trainer, moment: Moment, scores: dict[str, Scores], seconds: float) -> dict[str, Any]:
    """The content of metrics.json."""
    p = trainer.progress
    metrics: dict[str, Any] = dict(scores)
    stage1 = p.stage1 or {}
    metrics["stage1"] = {k: stage1[k] for k in ("train", "test", "bound", "risk", "kl", "gamma") if k in stage1}
    metrics |= {
        "scan": _scan_cost(trainer, moment),
        "held_gamma": trainer.held_gamma,
        "left_out": trainer.walker.walk.tried() if trainer.walker is not None else None,
        "learning_rate": trainer.lr,
        "seconds": round(seconds, 3),
        "steps": p.step,
        "stage1_epochs": p.stage1_epochs,
        "stage2_epochs": p.stage2_epochs,
    }
    return metrics


def _scan_cost(trainer: Trainer, moment: Moment) -> dict[str, float]:
    """What the scan took, and the standard error that a subset of the examples brings to the bound of stage 1."""
    gamma = trainer.progress.stage1.get("gamma", trainer.held_gamma)
    log_std = float(trainer.posterior.prior_log_std.detach().max())
    error = moment.subset_error(log_std, gamma)
    return {"networks": moment.measured, "examples": moment.n_used, "of": moment.n, "error": error}
