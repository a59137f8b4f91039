"""Baseline scores beside the network's: the best constant answer, and a linear model on the same inputs."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pactrain.problem.batches import Batches
from pactrain.problem.graph_nodes import Nodes
from pactrain.problem.losses import Loss
from pactrain.problem.read import Problem

Array = NDArray[Any]

MOST_ROWS, MOST_VALUES, MOST_FEATURES = 5_000, 5_000 * 1_024, 4_096
"""Training rows that the linear model sees, values in them, and features above which it is not tried: it should take seconds."""


def rivals(problem: Problem) -> dict[str, Any]:
    """Scores of the best constant answer and of a linear model on the rows by which the network is judged.

    Args:
        problem: The data as it came.  Held-out rows are the judge; where there are none, the training rows judge the constant
            answer alone.

    Returns:
        Under "constant" and "linear" a name and `accuracy` or `rmse`, of the linear model also the `rows` it was trained on.
        Empty where an answer is not a single class or number.
    """
    loss, held_out = problem.loss, problem.test
    if loss.task is None:
        return {}
    train = np.concatenate([_targets(part, loss) for part in _training(problem)])
    judge = train if held_out is None else _targets(held_out, loss)
    if train.ndim != 1 or judge.ndim != 1:
        return {}
    if loss.task == "classification":
        classes, counts = np.unique(train, return_counts=True)
        common = classes[counts.argmax()]
        found = {"constant": {"name": "guessing the largest class", "accuracy": float((judge == common).mean())}}
    else:
        found = {"constant": {"name": "guessing the mean", "rmse": _rmse(judge - train.mean(), loss)}}
    linear = _linear(problem)
    return found | ({} if linear is None else {"linear": linear})


def _training(problem: Problem) -> list[Batches]:
    """All rows that the network has learned from."""
    return [part for part in (problem.prior_rows, problem.batches) if part is not None]


def _targets(batches: Batches, loss: Loss) -> Array:
    found = torch.cat([loss.target(batch) for batch in batches.ordered()]).cpu().numpy()
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _rmse(error: Array, loss: Loss) -> float:
    return loss.unit * float(np.sqrt(np.square(error.astype(np.float64)).mean()))


def _linear(problem: Problem) -> dict[str, Any] | None:
    """A linear model judged by the held-out rows; None where there are none, or where the inputs are no rows of numbers."""
    parts = [_rows(part) for part in _training(problem)]
    test = None if problem.test is None else _rows(problem.test)
    if test is None or any(part is None for part in parts):
        return None
    x, y, seen = _chosen([p for p in parts if p is not None])
    test = test[0].astype(np.float64), test[1]
    if problem.loss.task == "regression":
        answer = _ridge(x, y.astype(np.float64), test[0])
        return {"name": f"linear regression{seen}", "rmse": _rmse(answer - test[1], problem.loss), "rows": len(y)}
    if len(np.unique(y)) < 2:
        return None
    right = _logistic(x, y, test[0]) == test[1]
    return {"name": f"logistic regression{seen}", "accuracy": float(right.mean()), "rows": len(y)}


def _chosen(parts: list[tuple[Array, Array]]) -> tuple[Array, Array, str]:
    """The rows of all parts together if they are few, else some of them and words that say so; the inputs in double precision."""
    places = np.cumsum([0, *(len(y) for _, y in parts)])
    n = int(places[-1])
    most = min(MOST_ROWS, MOST_VALUES // parts[0][0].shape[1])
    some = np.random.default_rng(0).choice(n, most, replace=False) if n > most else np.arange(n)
    part = np.searchsorted(places, some, side="right") - 1
    x = np.stack([parts[p][0][i - places[p]] for p, i in zip(part, some, strict=True)]).astype(np.float64)
    y = np.array([parts[p][1][i - places[p]] for p, i in zip(part, some, strict=True)])
    return x, y, f" on {most:,} rows" if n > most else ""


def _rows(batches: Batches) -> tuple[Array, Array] | None:
    """Inputs and targets as arrays, one row per example; None where they are not."""
    table = batches.table
    examples: Any = next(iter(batches.ordered()), None) if table is None else table.tensors
    if isinstance(examples, Nodes):  # the nodes' own features, without the edges
        examples = (examples.x[examples.nodes], examples.y)
    elif table is None or len(examples) != 2:
        return None
    x, y = examples
    x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    if not x.is_floating_point() or not 0 < x.shape[1] <= MOST_FEATURES or y.shape[1] != 1:
        return None
    x = x if x.dtype in (torch.float32, torch.float64) else x.double()
    return x.cpu().numpy(), y[:, 0].cpu().numpy()


def _logistic(x: Array, y: Array, new: Array) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a rival need not be exact
        answer: Array = model.fit(x, y).predict(new)
    return answer


def _ridge(x: Array, y: Array, new: Array) -> Array:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-3, 3, 13)))
    answer: Array = model.fit(x, y).predict(new)
    return answer
