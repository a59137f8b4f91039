"""Analysis of a trained model for the report: errors, confidence, importance of columns.  The content of analysis.json."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pactrain.problem.answers import Answers, ClassAnswers, NumberAnswers
from pactrain.problem.batches import TensorBatches
from pactrain.problem.read import Problem
from pactrain.problem.scores import BINS, evaluate
from pactrain.runs.columns import Encoding, feature_groups
from pactrain.runtime.seeds import derive

Array = NDArray[Any]
Labels = Callable[[int], Mapping[str, str]]

MOST_CLASSES = 20
"""Classes up to which a table of confusions can be read."""

POINTS = 400
"""Rows of which the true value and the answer are drawn."""

SHOWN = 6
"""Rows of each kind that are shown with their values."""

MOST_FEATURES = 3_072
"""Features of a row above which its values are not kept."""

MOST_COLUMNS, SHUFFLES, MOST_ROWS, FEWEST_ROWS = 40, 3, 1_000, 20
"""Columns, shuffles of each, and rows with which their importance is measured."""

WORK = 3e9
"""Weights times rows that measuring importance may take."""


def analyse(
    model: nn.Module, problem: Problem, answers: Answers | None, *, encoding: Encoding, weights: int, seed: int,
    labels: Labels | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What the network gets wrong, how sure it is, and which columns it uses.

    Args:
        model: The network, in the units of the data.
        problem: The data as it came.
        answers: Its answers for the held-out rows, or for the training rows if there are none.
        encoding: How columns became features; empty if nothing is known.
        weights: Size of the network.
        seed: Decides the points and the shuffles.
        labels: What is shown of a judged row beside its features, by its place.
    """
    judged = problem.batches if problem.test is None else problem.test
    found: dict[str, Any] = {"rows": "training" if problem.test is None else "held-out"}
    if isinstance(answers, ClassAnswers):
        found |= _classes(answers)
    elif isinstance(answers, NumberAnswers):
        found |= _numbers(answers, encoding, seed)
    chosen = [row for kind in ("unsure", "mistakes") for row in found.get(kind, ())]
    if labels is not None:
        for row in chosen:
            row["labels"] = dict(labels(row["row"]))
    table = judged.table
    if answers is None or table is None or len(table.tensors) != 2 or table.tensors[0][0].numel() > MOST_FEATURES:
        return found
    inputs = table.tensors[0]
    for row in chosen:
        values = inputs[row["row"]].flatten().double().cpu()
        row["inputs"] = [float(f"{v:.6g}") for v in values.tolist()]
    found["shape"] = list(inputs.shape[1:])
    if problem.test is not None and inputs.ndim == 2:
        found["importance"] = importance(model, table, problem, encoding=encoding, weights=weights, seed=seed)
    return found


def _classes(answers: ClassAnswers) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if answers.classes <= MOST_CLASSES:
        found["confusion"] = answers.confusion().tolist()
    if not answers.calibrated or not np.isfinite(answers.scores).all():
        return found
    sure, right = answers.scores.max(1), answers.answer == answers.target
    found["reliability"] = reliability(sure, right)
    found["unsure"] = [_row(answers, i) for i in np.argsort(sure, kind="stable")[:SHOWN]]
    wrong = np.flatnonzero(~right)
    found["mistakes"] = [_row(answers, i) for i in wrong[np.argsort(-sure[wrong], kind="stable")[:SHOWN]]]
    return found


def _row(answers: ClassAnswers, at: int) -> dict[str, Any]:
    scores = answers.scores[at]
    return {
        "row": int(at),
        "true": int(answers.target[at]),
        "answer": int(scores.argmax()),
        "confidence": float(scores.max()),
        "of_true": float(scores[answers.target[at]]),
    }


def reliability(confidence: Array, right: Array) -> list[dict[str, float]]:
    """For each bin of confidences that has rows: their number, mean confidence, and share of right answers."""
    bins = np.clip((confidence * BINS).astype(int), 0, BINS - 1)
    parts = [bins == b for b in range(BINS) if (bins == b).any()]
    return [
        {"n": int(part.sum()), "confidence": float(confidence[part].mean()), "right": float(right[part].mean())}
        for part in parts
    ]


def _numbers(answers: NumberAnswers, encoding: Encoding, seed: int) -> dict[str, Any]:
    """Points to draw, and the rows that are missed most; the encoding gives the target's mean back."""
    mean = float(encoding.get("target_mean", 0.0))
    target, answer = answers.target + mean, answers.answer + mean
    if not np.isfinite(answer).all():
        return {}
    some = np.random.default_rng(derive(seed, "points")).permutation(len(target))[:POINTS]
    worst = np.argsort(-np.abs(answer - target), kind="stable")[:SHOWN]
    return {
        "points": {"true": target[some].tolist(), "answer": answer[some].tolist()},
        "mistakes": [{"row": int(i), "true": float(target[i]), "answer": float(answer[i])} for i in worst],
    }


def importance(
    model: nn.Module, table: TensorBatches, problem: Problem, *, encoding: Encoding, weights: int, seed: int
) -> list[dict[str, Any]]:
    """How much worse the network gets when the values of a column are shuffled among the rows, the most important column first.

    Returns:
        Of each column its name and `loss`, the fall of the accuracy or the rise of the rmse, with its spread over the shuffles;
        empty where there are too many columns, or too much work.
    """
    inputs, targets = table.tensors
    features = inputs.shape[1]
    groups = feature_groups(encoding) or {f"column {i}": [i] for i in range(features)}
    rows = min(MOST_ROWS, len(targets), int(WORK / max(1, weights * len(groups) * SHUFFLES)))
    if len(groups) > MOST_COLUMNS or sum(map(len, groups.values())) != features or rows < FEWEST_ROWS:
        return []
    inputs, targets = inputs[:rows], targets[:rows]
    name = "accuracy" if problem.loss.task == "classification" else "rmse"
    sign = 1 if name == "accuracy" else -1

    def score(x: torch.Tensor) -> float:
        return evaluate(model, TensorBatches((x, targets), rows).ordered(), problem.loss)[name]

    whole, found = score(inputs), []
    for column, at in groups.items():
        falls = []
        for shuffle in range(SHUFFLES):
            mixed = inputs.clone()
            order = torch.randperm(
                rows, generator=torch.Generator().manual_seed(derive(seed, "shuffle", column, shuffle))
            )
            mixed[:, at] = inputs[order.to(inputs.device)][:, at]
            falls.append(sign * (whole - score(mixed)))
        found.append({"column": column, "loss": float(np.mean(falls)), "spread": float(np.std(falls))})
    return sorted(found, key=lambda one: -one["loss"])
