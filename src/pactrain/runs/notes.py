"""Notes about a finished training: warnings and advice shown beside its scores."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pactrain.certification.data_checks import copied_rows
from pactrain.problem.read import Problem
from pactrain.problem.scores import entropy
from pactrain.runs.sentences import main_score, percent, score_text
from pactrain.training.train import Trained
from pactrain.training.trainer import Trainer

INFORMED = 0.9
"""Below this part of the classes' entropy the probabilities have learnt something, whatever the accuracy."""

LARGE = 30.0
"""Size of a column of inputs, or of targets that are numbers, above which the user is told to scale them.  A network that was made for
inputs around one sees little but the largest of them, and the rules, which ask the untrained network, see no more than it does.  Also of the
mean of a column in its standard deviations."""

USEFUL_AUC = 0.6
"""Area under the ROC curve from which on the scores order the rows, even if the largest class is always named."""

CLEARLY = 0.02
"""Accuracy, or part of the rmse, by which a linear model has to be better for the user to be told."""

SHORT = 0.25
"""Part of the epochs that the rules wanted below which a budget is told to have ended training early."""

WIDE, FAR = 0.15, 2.0
"""Difference of accuracies, and ratio of rmses, between training and held-out rows that the user is told of."""

MEMORISED = 0.01
"""Share of the left-out loss below which the loss of regression on its training examples is told to the user."""

COPIED = 0.05
"""Share of rows that are copies of others from which on the user is told what that does to leave-one-out."""

FEW = 5000
"""Rows below which a network that is trained for a certificate should have a prior from rows of its own."""

FLAT = 1e-6
"""Deviation of a column, in units of its mean, below which it is a constant but for rounding."""


def notes_on(trained: Trained, metrics: Mapping[str, Any], *, encoded: bool = False) -> list[str]:
    """Sentences about a finished training, the most urgent first.

    Args:
        trained: The training.
        metrics: Scores of the network and of its rivals, as `judge` finds them.
        encoded: True if an encoder has made the features: their scale is then nothing that the user can change.
    """
    problem, given = trained.start.problem, trained.start.scaled.given
    notes = []
    if trained.interrupted:
        notes.append("Training was interrupted; this is the state it had reached, and it can be resumed.")
    notes += _notes_on_infinity(metrics)
    guessing = _notes_on_guessing(problem, metrics) or _notes_on_constant(metrics)
    notes += guessing or _notes_on_linear(metrics)
    notes += _notes_on_budget(trained.trainer)
    notes += _notes_on_rows(metrics)
    notes += _notes_on_memory(trained) or ([] if guessing else _notes_on_gap(metrics))
    notes += _notes_on_left_out(trained)
    notes += _notes_on_width(problem) + ([] if encoded else _notes_on_scales(problem, given))
    if problem.trained_on is not problem.loss:
        name = problem.trained_on.name
        notes.append(f"Trained on {name}: the loss brought to [0, 1], as this bound needs it.")
        if problem.prior_rows is None and metrics["train"]["n"] < FEW:
            notes.append(
                "With so few rows a bound for losses in [0, 1] charges more for learning than it returns, and the network stays near "
                "its prior. prior_data=0.5 trains the prior on half of the rows first, and proves more."
            )
    return notes


def _notes_on_infinity(metrics: Mapping[str, Any]) -> list[str]:
    """A loss on the training rows that is no longer finite."""
    if math.isfinite(loss := metrics["train"]["loss"]):
        return []
    return [
        f"The loss of the trained network on its training rows is {loss}: its answers or the targets are too large for numbers of "
        "this precision, or the loss divides by zero. Do not use it; scale the data, or train for longer with a smaller rate."
    ]


def _notes_on_guessing(problem: Problem, metrics: Mapping[str, Any]) -> list[str]:
    train, shares = metrics["train"], problem.class_shares()
    majority = max(shares, default=1.0)
    learnt = train.get("nll", math.inf) < INFORMED * entropy(shares)  # rare classes may be told apart and never named
    if majority < 1 and train["accuracy"] <= majority + 0.01 and not learnt:
        return [
            f"The network predicts no better than always naming the largest class ({percent(majority)} of the training "
            "data): it has stayed at its prior. Check the scale of the inputs and that the labels belong to them."
        ]
    return []


def _behind(metrics: Mapping[str, Any], rival: str, by: float) -> bool:
    """True if the network is worse than a rival on held-out rows, by a certain amount or part."""
    name, ours = main_score(metrics), metrics.get("test") or {}
    theirs = metrics["rivals"].get(rival, {}).get(name)
    if name not in ours or theirs is None:
        return False
    return bool(ours[name] <= theirs - by if name == "accuracy" else ours[name] >= theirs * (1 + by))


def _notes_on_constant(metrics: Mapping[str, Any]) -> list[str]:
    """On held-out rows no better than guessing."""
    if not _behind(metrics, "constant", 0.0) or metrics["test"].get("auc", 0.0) >= USEFUL_AUC:
        return []
    return [
        f"On held-out rows the network is no better than {metrics['rivals']['constant']['name']}: either the inputs say nothing about "
        "the target, or there are too few rows to learn it. Check that the target belongs to the rows."
    ]


def _notes_on_linear(metrics: Mapping[str, Any]) -> list[str]:
    """On held-out rows worse than a linear model."""
    if not _behind(metrics, "linear", CLEARLY):
        return []
    name, linear = main_score(metrics), metrics["rivals"]["linear"]
    return [
        f"A linear model does better here ({linear['name']}: {name} {score_text(name, linear[name])}): such a network (--model linear) "
        "may be all that these rows support."
    ]


def _notes_on_budget(trainer: Trainer) -> list[str]:
    """Time that ended training early; whoever names a number of epochs has asked for that."""
    done, wanted = trainer.progress.epoch, trainer.rules.stage1_epochs(trainer.steps_per_epoch)
    if math.isfinite(trainer.budget.seconds) and done < SHORT * wanted:
        return [
            f"The budget ended training after {done:,} of about {wanted:,} epochs: more time should make the network better."
        ]
    return []


def _notes_on_rows(metrics: Mapping[str, Any]) -> list[str]:
    """Scores that were measured on some of the rows."""
    if (measured := metrics["train"].get("measured")) is None:
        return []
    return [
        f"The budget left time to measure scores and certificate on {measured:,} of the {metrics['train']['n']:,} training rows, "
        "chosen at random."
    ]


def _notes_on_memory(trained: Trained) -> list[str]:
    """Regression that fits its training examples far more closely than the linear network predicts left-out ones."""
    strength, stage1 = trained.start.strength, trained.trainer.progress.stage1
    fitted = stage1.get("train", {}).get("loss", math.inf)
    if strength is None or strength.classes or not 0 <= fitted < MEMORISED * (left_out := strength.first_left_out()):
        return []
    return [
        f"The training rows have been memorised: their loss is {fitted / left_out:.1g} of the one estimated for rows that are left out. "
        "How strongly to regularise cannot be told from this data, as with many irrelevant columns beside few rows; fewer columns or more rows may "
        "predict better."
    ]


def _notes_on_left_out(trained: Trained) -> list[str]:
    """Classification whose left-out loss is a poor guide to how strongly to regularise, if it was trained for as long as the rules wanted."""
    walker, problem = trained.trainer.walker, trained.start.problem
    found = walker.walk.answers.get(walker.walk.here) if walker is not None else None
    if found is None or trained.trainer.budget.epochs is not None:
        return []
    notes = []
    guessing = entropy(problem.class_shares())
    if problem.trained_on.name == "cross_entropy" and found.loss > INFORMED * guessing:
        notes.append(
            f"Rows that are left out would be predicted hardly better than by guessing (loss {found.loss:.3g} against {guessing:.3g}), so the "
            "network was regularised strongly. Where rows have to be remembered rather than compared with others, plain training may do better."
        )
    table = problem.batches.table
    copies = len(copied_rows(table)) if table is not None else 0
    if table is not None and copies > COPIED * len(table):
        notes.append(
            f"{copies:,} of the {len(table):,} training rows are copies of others: a row that is left out is still known from its copies, so how "
            "strongly to regularise cannot be told well. Keep each row once, or try plain training beside it."
        )
    return notes


def _notes_on_gap(metrics: Mapping[str, Any]) -> list[str]:
    """Training and held-out scores that differ wildly."""
    name, train, test = main_score(metrics), metrics["train"], metrics.get("test") or {}
    if name not in test or name == "loss":
        return []
    wide = train[name] - test[name] > WIDE if name == "accuracy" else test[name] > FAR * train[name]
    if not wide:
        return []
    return [
        f"Much better on its training rows than on held-out ones ({name} {score_text(name, train[name])} against "
        f"{score_text(name, test[name])}): part of what it learned does not carry over. More rows help most."
    ]


def _notes_on_width(problem: Problem) -> list[str]:
    """Of tables with more columns than rows."""
    table = problem.batches.table
    if table is None or len(table.examples) != 2:
        return []
    x = table.examples[0]
    if x.ndim != 2 or not x.is_floating_point() or x.shape[1] <= len(x):
        return []
    return [
        f"There are more columns ({x.shape[1]}) than rows ({len(x)}): how strongly to regularise can hardly be told from so few rows."
    ]


def _notes_on_scales(problem: Problem, given: Problem) -> list[str]:
    """Of tables whose inputs or targets are not of the size that networks are made for, in the units that they were trained in."""
    batches, came = problem.batches.table, given.batches.table
    if batches is None or came is None:
        return []
    x, y = batches.examples[0], batches.examples[-1]
    notes, how = [], "pactrain train and pactrain.sklearn do so themselves"
    if len(batches.examples) == 2 and x.ndim == 2 and x.is_floating_point():
        column, size = _largest(_size(x))
        if size > LARGE:
            notes.append(
                f"Column {column} of the inputs has values around {float(_size(came.examples[0])[column]):.3g}: a network learns better "
                f"from columns of about the same size, near one. Scale them first (sklearn's StandardScaler, say); {how}."
            )
        means, stds = x.mean(0).abs(), x.std(0, correction=0)
        constant = stds <= FLAT * means
        column, offset = _largest(torch.where(constant, 0.0, means / stds))
        if offset > LARGE:
            notes.append(
                f"Column {column} of the inputs hardly varies beside its mean, which is {offset:.3g} times its standard deviation. "
                f"Subtract means first (sklearn's StandardScaler, say); {how}."
            )
    numbers = problem.loss.task == "regression" and y.is_floating_point() and y.numel()
    if numbers and float(_size(y.reshape(-1, 1))) > LARGE:
        notes.append(
            f"The targets have values around {float(_size(came.examples[-1].reshape(-1, 1))):.3g}, and an untrained network "
            "answers with values around one: training has a long way to go before it learns anything. Subtract their mean and "
            f"divide by their standard deviation first; {how}."
        )
    return notes


def _size(x: Tensor) -> Tensor:
    """Root mean square of each column."""
    size: Tensor = torch.linalg.vector_norm(x, dim=0, dtype=torch.float64) / math.sqrt(len(x))
    return size


def _largest(values: Tensor) -> tuple[int, float]:
    return int(values.argmax()), float(values.max())
