"""Budgets of epochs, time and steps, and how the stages share them."""

from typing import Any

import pytest

import pactrain
from pactrain import PactrainError
from pactrain.rules.constants import EXAMPLES
from pactrain.rules.presets import AUTO
from pactrain.rules.rules import FEWEST_SCANNED, Rules
from pactrain.runtime.events import Event
from pactrain.training.budget import Budget
from tests.zoo import build, rows


def test_budgets_are_honoured() -> None:
    import time

    events: list[Event] = []
    started = time.monotonic()
    result = pactrain.fit(build("mlp"), rows(2000), budget=0.5, callbacks=[events.append])
    assert result.metrics["steps"] > 5
    assert result.history[-1]["scores_epoch"] == len(result.history)  # however it ends, the end is looked at
    assert time.monotonic() - started < 10
    assert sum(r["stage"] == 1 for r in result.history) < AUTO.stage1_epochs(31)
    assert {e.phase for e in events} == {"scan", "train", "certify", "report"}
    assert len(pactrain.fit(build("mlp"), rows(), budget="3 epochs").history) <= 3
    for bad in ("soon", "-3s", "3 weeks", "1.5 epochs", "..s"):
        with pytest.raises(PactrainError, match="not understood"):
            pactrain.fit(build("mlp"), rows(), budget=bad)


def test_budget_is_shared_between_the_stages() -> None:
    rules = Rules(name="r", start="knee", stage2_share=0.5)
    assert Budget(epochs=30).epochs_of_stages(1000, rules) == (20, 10)
    assert Budget(epochs=30).epochs_of_stages(10, rules) == (10, 5)
    assert Budget().epochs_of_stages(100, rules) == (100, 50)


def test_a_small_budget_leaves_less_to_the_scan() -> None:
    def scanned(epochs: int, n: int, **limits: Any) -> int:
        return pactrain.fit(build("mlp"), rows(n), preset=AUTO.replace(fixed_epochs=epochs), **limits).moment.n_used

    assert scanned(60, 600, budget=1e-6) == FEWEST_SCANNED < scanned(60, 600) == scanned(60, 600, budget="1 epoch")
    assert scanned(6000, 1000, budget="1 epoch") == EXAMPLES
