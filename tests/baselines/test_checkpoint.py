"""Plain training that is stopped and goes on."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pactrain.baselines.checkpoint import FILE, kept_history
from pactrain.baselines.plain_training import Settings, Trained, train
from pactrain.runtime.errors import PactrainError, RunError
from tests.baselines.small_problem import problem
from tests.zoo import weights

SETTINGS = Settings("adam", 0.01, noise=0.01, dropout=0.3, batch_size=40, epochs=4, schedule="cosine")


class Stop(Exception):
    """The process is gone."""


def network() -> nn.Module:
    torch.manual_seed(0)
    x, _ = problem()
    return nn.Sequential(nn.Linear(x.shape[1], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def run(model: nn.Module, folder: Path | None, stop: int | None = None) -> Trained:
    def watch(step: int) -> dict[str, Any]:
        if step == stop:
            raise Stop
        return {"step": step, "mean": float(weights(model).mean())}

    return train(model, problem(), SETTINGS, measure_every=1, watch=watch, keep=folder, seed=3)


def test_a_training_that_was_stopped_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    whole = network()
    expected = run(whole, None)
    for stop in (5, 8, 11):  # in the second, third and fourth epoch of three steps each
        with pytest.raises(Stop):
            run(network(), tmp_path, stop)
        assert [r["step"] for r in kept_history(tmp_path)] == list(range(1, stop // 3 * 3 + 1))
    again = network()
    found = run(again, tmp_path)
    assert found.history == expected.history
    assert (found.steps, found.train) == (expected.steps, expected.train)
    assert all(torch.equal(a, b) for a, b in zip(again.state_dict().values(), whole.state_dict().values(), strict=True))
    ended = network()
    assert run(ended, tmp_path).train == expected.train  # there is nothing left to do


def test_a_damaged_checkpoint_and_what_is_not_kept(tmp_path: Path) -> None:
    assert kept_history(tmp_path) == []
    with pytest.raises(PactrainError, match="leave out one of the two"):
        train(network(), problem(), SETTINGS, keep=tmp_path, validation=problem())
    (tmp_path / FILE).write_bytes(b"nothing")
    with pytest.raises(RunError, match="damaged"):
        run(network(), tmp_path)
