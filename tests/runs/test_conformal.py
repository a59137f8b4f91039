"""Intervals and sets hold what they say, whatever the network."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from sklearn import datasets
from torch import nn

import pactrain
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read_data import as_batches
from pactrain.runs.conformal import Calibration, calibrated, conformal_quantiles
from pactrain.runtime.errors import PactrainError

CPU = torch.device("cpu")


def test_the_limit_is_the_order_statistic() -> None:
    scores = torch.arange(1.0, 20)[torch.randperm(19)][:, None]
    assert Calibration(scores, "rows").limits(0.9)[0] == 18  # ⌈20 · 0.9⌉
    assert Calibration(scores, "rows").limits(0.95)[0] == 19
    assert np.isinf(Calibration(scores, "rows").limits(0.96)[0])  # twenty rows cannot say more
    for coverage in (1.0, "0.9"):
        with pytest.raises(PactrainError, match="strictly between 0 and 1"):
            Calibration(scores, "rows").limits(coverage)  # type: ignore[arg-type]
    assert Calibration(scores, "rows", ("rows depend",)).guarantee(0.9).startswith("heuristic: ")


def test_what_intervals_and_sets_are_like_in_words() -> None:
    scores = torch.arange(1.0, 20)[:, None]
    assert (
        Calibration(scores, "rows").in_words("values", 10.0).startswith("intervals of ± 180: certified: 90 % coverage")
    )
    two = Calibration(torch.cat([scores, 2 * scores], 1), "rows", ("rows depend",))
    assert two.in_words("values").startswith("intervals of ± 18 to ± 36, by output: heuristic: 90 % coverage")
    words = Calibration(scores / 20, "rows").in_words("classes").replace("\N{NO-BREAK SPACE}", " ")
    assert words.startswith("sets of the classes that have a probability of at least 10.0 %: certified")
    assert "every interval is infinite" in Calibration(scores[:3], "rows").in_words("values")


def covered(x: Any, y: Any, *, loss: str, coverage: float, splits: int, seed: int = 0) -> tuple[int, int]:
    """How often new rows lie in their interval or set, over splits with one new row each, and the number of splits.

    One new row per split: the indicators of different splits are then nearly independent, and binomial.
    The network is trained once on its own third of the rows, a rough one that has not been trained for long.
    """
    x, y = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)
    if loss == "mse":
        y = ((y - y.double().mean()) / y.double().std()).float()
    outputs = int(y.max()) + 1 if loss == "cross_entropy" else 1
    order = np.random.default_rng(seed).permutation(len(x))
    train, rest = order[: len(x) // 3], order[len(x) // 3 :]
    torch.manual_seed(seed)
    network = nn.Linear(x.shape[1], outputs)
    result = pactrain.fit(network, (x[train], y[train]), loss=loss, budget="5 epochs")
    inside = 0
    found = result.predict(x[rest])
    for split in range(splits):
        shuffled = np.random.default_rng([seed, split]).permutation(len(rest))
        new, others = shuffled[0], shuffled[1 : 1 + len(rest) // 2]
        batches = as_batches((x[rest[others]], y[rest[others]]), batch_size=64, device=CPU)
        calibration = calibrated(network, batches, LOSSES[loss], source="rows")
        assert calibration is not None
        limit = float(calibration.limits(coverage)[0])
        if loss == "mse":
            inside += bool(abs(found.values[new] - float(y[rest[new]])) <= limit)
        else:
            assert found.probabilities is not None
            inside += bool(1 - found.probabilities[new, int(y[rest[new]])] <= limit)
    return inside, splits


TABLES: list[tuple[str, str]] = [
    ("load_diabetes", "mse"),
    ("load_breast_cancer", "cross_entropy"),
    ("load_wine", "cross_entropy"),
    ("load_digits", "cross_entropy"),
]


def within(inside: int, splits: int, coverage: float) -> bool:
    """True if a count is not surprising for a coverage (two-sided, one in ten thousand)."""
    return bool(binom.ppf(5e-5, splits, coverage) <= inside <= binom.ppf(1 - 5e-5, splits, coverage))


@pytest.mark.parametrize(("name", "loss"), [TABLES[0], TABLES[3]])
def test_coverage_over_some_splits(name: str, loss: str) -> None:
    x, y = getattr(datasets, name)(return_X_y=True)
    assert within(*covered(x, y, loss=loss, coverage=0.8, splits=100), 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize(("name", "loss"), [*TABLES, *((f"uci:{n}", "mse") for n in ("concrete", "energy", "yacht"))])
def test_coverage_over_200_splits(name: str, loss: str, coverage: float) -> None:
    if name.startswith("uci:"):
        from pactrain.data.load import load

        try:
            task = load(name)
        except PactrainError as error:
            pytest.skip(str(error))
        x, y = np.concatenate([task.x_train, task.x_test]), np.concatenate([task.y_train, task.y_test])
    else:
        x, y = getattr(datasets, name)(return_X_y=True)
    assert within(*covered(x, y, loss=loss, coverage=coverage, splits=200), coverage)


def test_the_test_can_fail() -> None:
    x, y = datasets.load_diabetes(return_X_y=True)
    inside, splits = covered(x, y, loss="mse", coverage=0.6, splits=100)
    assert not within(inside, splits, 0.9)


def test_intervals_of_a_result_hold_new_rows() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(900, 2, generator=g)
    y = 5 * x[:, 0] + torch.randn(900, generator=g)
    result = pactrain.fit(nn.Linear(2, 1), (x[:300], y[:300]), calibration=(x[300:600], y[300:600]), budget="9 epochs")
    found = result.predict(x[600:], coverage=0.9)
    assert found.low is not None
    assert found.high is not None
    share = ((found.low <= y[600:].numpy()) & (y[600:].numpy() <= found.high)).mean()
    assert 0.8 < share < 0.97
    assert found.guarantee.startswith("certified: 90 % coverage from 300 calibration rows")


@pytest.mark.parametrize("held_out", ["test", "calibration"])
@pytest.mark.parametrize("options", [{}, {"prior_data": 0.5}, {"certificate": "progressive"}])
def test_rows_that_were_trained_on_guarantee_nothing(held_out: str, options: dict[str, Any]) -> None:
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    for copied in (0, 7):
        given: dict[str, Any] = options | {held_out: (x[120 - copied :], y[120 - copied :])}
        result = pactrain.fit(nn.Linear(3, 2), (x[:120], y[:120]), budget="3 epochs", **given)
        found = result.predict(x[:5], coverage=0.9).guarantee
        assert found.startswith("heuristic: " if copied else "certified: "), found
        assert ("7 of them are also in the training data" in found) == bool(copied)


def test_quantile_networks_are_conformalised() -> None:
    g = torch.Generator().manual_seed(1)
    x = torch.rand(1200, 1, generator=g)
    y = x[:, 0] * torch.randn(1200, generator=g)
    low, high = (
        pactrain.fit(nn.Linear(1, 1), (x[:200], y[:200]), loss=f"quantile:{level}", budget="10 epochs")
        for level in (0.05, 0.95)
    )
    ends = [(result.predict(x[200:600]).values, result.predict(x[600:]).values) for result in (low, high)]
    lower, upper = conformal_quantiles((ends[0][0], ends[1][0], y[200:600]), (ends[0][1], ends[1][1]), coverage=0.9)
    truth = y[600:].numpy()
    assert 0.85 < ((lower <= truth) & (truth <= upper)).mean() < 0.95


def test_one_label_has_sets_and_several_are_refused() -> None:
    torch.manual_seed(0)
    x = torch.randn(900, 3)
    label = x[:, 0] + 0.5 * torch.randn(900) > 0
    result = pactrain.fit(
        nn.Linear(3, 1), (x[:300], label[:300]), test=(x[300:600], label[300:600, None].float()), budget="10 epochs"
    )
    found = result.predict(x[600:], coverage=0.9)
    assert found.sets is not None
    assert found.sets.shape == (300, 2)
    held = found.sets[np.arange(300), label[600:].long().numpy()].mean()
    assert 0.83 < held < 0.97
    assert found.guarantee.startswith("certified: 90 % coverage from 300 test rows")
    labels = (x[:, :2] > 0).float()
    several = pactrain.fit(nn.Linear(3, 2), (x[:300], labels[:300]), test=(x[300:], labels[300:]), budget="2 epochs")
    with pytest.raises(PactrainError, match="not several labels"):
        several.predict(x[:5], coverage=0.9)


def test_a_guarantee_says_when_rows_are_too_few() -> None:
    assert "every interval is infinite" in Calibration(torch.rand(8, 1), "rows").guarantee(0.9)
    assert "infinite" not in Calibration(torch.rand(9, 1), "rows").guarantee(0.9)
