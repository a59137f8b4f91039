"""Grid search: chosen on validation rows, trained again on everything."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import nn

from pactrain.baselines.grid_search import best_trial, grid, hold_out, refit_length, search
from pactrain.baselines.plain_training import Settings, rank, train
from pactrain.runtime.errors import DataError, PactrainError
from tests.baselines.small_problem import network, problem
from tests.zoo import weights


def test_ranks() -> None:
    assert rank({"loss": 5.0, "accuracy": 0.9}) > rank({"loss": 0.1, "accuracy": 0.8})
    assert rank({"loss": 0.1, "accuracy": 0.8}) > rank({"loss": 0.2, "accuracy": 0.8})
    assert rank({"loss": 0.1, "rmse": 1.0}) > rank({"loss": 0.2, "rmse": 0.5})
    assert rank({"loss": 0.2}) > rank({"loss": math.nan, "accuracy": 1.0})


def test_a_search_takes_what_is_best_on_the_validation_rows_and_trains_again_on_everything() -> None:
    everything = problem(200)
    training, validation = hold_out(everything, 3)
    assert (len(training[0]), len(validation[0])) == (160, 40)
    together = torch.cat([training[0], validation[0]])
    assert torch.equal(together.sort(0).values, everything[0].sort(0).values)
    candidates = grid(Settings("adam", steps=60), lr=(1e-5, 3e-2), noise=(0.0, 0.05))
    found = search(network, candidates, training=training, validation=validation, everything=everything, seed=3)
    assert [s.lr for s in candidates] == [1e-5, 1e-5, 3e-2, 3e-2]
    assert found.chosen.lr == 3e-2
    assert found.trainings == 5
    ranks = {s: rank(t.validation) for s, t in found.trials if t is not None and t.validation is not None}
    assert ranks[found.chosen] == max(ranks.values())
    twin = copy.deepcopy(network())
    train(twin, everything, found.chosen, stop_at=found.best_step, seed=3)
    assert torch.equal(weights(twin), weights(found.model))


def test_a_search_with_settings_that_explode() -> None:
    x, y = problem()
    data = (1e3 * x, 1e3 * y.float())
    training, validation = hold_out(data, 0)
    bad, good = Settings("sgd", 10.0, steps=40), Settings("adam", 0.01, steps=40)
    parts: dict[str, Any] = {"training": training, "validation": validation, "everything": data}
    found = search(lambda: nn.Linear(4, 1), [bad, good], **parts)
    assert found.chosen == good
    assert dict(found.trials)[bad] is None
    with pytest.raises(PactrainError, match="smaller learning rates"):
        search(lambda: nn.Linear(4, 1), [bad], **parts)
    with pytest.raises(DataError, match="too few"):
        hold_out((x[:2], y[:2]), 0)


def test_the_first_of_equals_wins_and_failures_never_do() -> None:
    good, better = {"accuracy": 0.8, "loss": 0.5}, {"accuracy": 0.8, "loss": 0.4}
    assert best_trial([None, good, better, dict(better)]) == 2
    assert best_trial([{"accuracy": 0.9, "loss": math.nan}, good]) == 1
    assert best_trial([{"loss": 2.0}, {"loss": 1.0}]) == 1
    assert best_trial([None, None]) is None


def test_a_winner_is_trained_again_for_at_least_one_step() -> None:
    assert [refit_length(step) for step in (None, 0, 1, 40)] == [1, 1, 1, 40]
