"""What a network has to beat."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.graph_nodes import Nodes
from pactrain.problem.losses import CallableLoss, Loss
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read import Problem
from pactrain.runs import rivals as module
from pactrain.runs.rivals import rivals


def table(n: int, seed: int, *, regression: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of which a linear model can learn something; two thirds are of one class."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=g) * torch.tensor([1.0, 100.0, 0.01])
    value = x[:, 0] + 0.01 * x[:, 1] + 0.3 * torch.randn(n, generator=g)
    return x, value if regression else (value > 0.6).long()


def problem(train: tuple[torch.Tensor, ...], test: tuple[torch.Tensor, ...] | None, loss: Loss) -> Problem:
    """A problem in memory."""
    held_out = None if test is None else TensorBatches(test, 64)
    return Problem(TensorBatches(train, 64), held_out, train, loss, loss)


def test_classes_against_scikit_learn() -> None:
    (x, y), (u, v) = table(200, 0), table(100, 1)
    found = rivals(problem((x, y), (u, v), LOSSES["cross_entropy"]))
    assert found["constant"] == {
        "name": "guessing the largest class",
        "accuracy": pytest.approx(float((v == 0).float().mean())),
    }
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(x.double(), y)
    assert found["linear"]["accuracy"] == pytest.approx(model.score(u.double(), v))
    assert found["linear"]["accuracy"] > found["constant"]["accuracy"] + 0.1
    assert found["linear"]["rows"] == 200


def test_numbers_against_scikit_learn_in_the_targets_unit() -> None:
    from dataclasses import replace

    (x, y), (u, v) = table(200, 0, regression=True), table(100, 1, regression=True)
    found = rivals(problem((x, y), (u, v), replace(LOSSES["mse"], unit=10.0)))
    error = 10 * float((v - y.mean()).square().mean().sqrt())
    assert found["constant"] == {"name": "guessing the mean", "rmse": pytest.approx(error, rel=1e-6)}
    model = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-3, 3, 13))).fit(x.double(), y.double())
    expected = 10 * np.sqrt(np.square(model.predict(u.double()) - v.numpy()).mean())
    assert found["linear"]["rmse"] == pytest.approx(expected, rel=1e-6)


def test_without_held_out_rows_only_the_constant_is_judged() -> None:
    found = rivals(problem(table(50, 0), None, LOSSES["cross_entropy"]))
    assert list(found) == ["constant"]


def test_batches_of_the_users_own_have_a_constant_answer() -> None:
    data = LoaderBatches([table(20, 0), table(20, 1)], torch.device("cpu"))
    own = LOSSES["cross_entropy"]
    assert list(rivals(Problem(data, data, table(20, 0), own, own))) == ["constant"]


def test_nodes_have_a_linear_model_of_their_own_features() -> None:
    x, y = table(60, 0)
    edges = torch.zeros(2, 0, dtype=torch.long)
    train, test = (Nodes(x, edges, nodes, y[nodes]) for nodes in (torch.arange(40), torch.arange(40, 60)))
    parts = [LoaderBatches([nodes], torch.device("cpu")) for nodes in (train, test)]
    own = LOSSES["cross_entropy"]
    as_rows = problem((x[:40], y[:40]), (x[40:], y[40:]), own)
    assert rivals(Problem(parts[0], parts[1], parts[0], own, own)) == rivals(as_rows)


def test_there_is_none_where_a_row_has_several_targets() -> None:
    x = torch.zeros(4, 3)
    pixels = torch.zeros(4, 5, dtype=torch.long)
    assert rivals(problem((x, pixels), None, LOSSES["cross_entropy"])) == {}
    assert rivals(problem((x, torch.zeros(4, 2)), None, LOSSES["binary_cross_entropy"])) == {}
    assert rivals(problem((x, x), None, CallableLoss.of(lambda predict, batch: predict(batch[0])))) == {}


def test_the_linear_model_sees_no_more_rows_than_it_has_time_for() -> None:
    many = module.MOST_ROWS + 100
    found = rivals(problem(table(many, 0), table(50, 1), LOSSES["cross_entropy"]))
    assert found["linear"]["rows"] == module.MOST_ROWS
    assert found["linear"]["name"] == f"logistic regression on {module.MOST_ROWS:,} rows"
