"""Training along the walk in γ: interrupted, resumed, cut short by the budget."""

from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.datasets import load_iris

import pactrain
from pactrain.models.mlp import mlp
from pactrain.rules.presets import AUTO
from pactrain.runtime.events import Event
from tests.interruptions import epochs_of
from tests.rules.gamma.walks import SHORT, problem, wrongly_labelled


def test_the_stds_after_going_back_are_those_of_the_place_it_goes_back_to() -> None:
    result = pactrain.fit(mlp(64, 10, seed=0), wrongly_labelled(), preset=AUTO.replace(fixed_epochs=60))
    assert result.metrics["held_gamma"] != result.metrics["left_out"][-1]["gamma"]
    assert float(result.posterior.kl_by_group().sum()) == pytest.approx(result.metrics["stage1"]["kl"], rel=1e-6)


@pytest.mark.parametrize("crash", [60, 70, 90])
def test_a_run_that_goes_up_can_be_interrupted(crash: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    x, y = load_iris(return_X_y=True)
    data = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    rules = AUTO.replace(fixed_epochs=60)

    def stop(event: Event) -> None:
        if event.phase == "train" and event.done == crash:
            raise RuntimeError("the power goes off")

    whole = pactrain.fit(mlp(4, 3, seed=0), data, preset=rules)
    assert whole.metrics["left_out"][1]["gamma"] > whole.metrics["left_out"][0]["gamma"]
    assert len(whole.history) >= 90
    with pytest.raises(RuntimeError, match="power"):
        pactrain.fit(mlp(4, 3, seed=0), data, preset=rules, out=tmp_path / "run", callbacks=[stop])
    events: list[Event] = []
    again = pactrain.fit(
        mlp(4, 3, seed=0), data, preset=rules, out=tmp_path / "run", resume=True, callbacks=[events.append]
    )
    assert epochs_of(events)[0] == crash + 1
    assert again.metrics["left_out"] == whole.metrics["left_out"]
    assert torch.equal(again.posterior.log_std, whole.posterior.log_std)
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True))


@pytest.mark.parametrize("epoch", [8, 17, 19])
def test_a_walk_that_was_cut_off_ends_with_the_same_bits(
    epoch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)

    class Crash(Exception):
        pass

    def crash(event: Any) -> None:
        if event.phase == "train" and event.done == epoch:
            raise Crash

    model, data = problem(0.35)
    whole = pactrain.fit(model, data, preset=SHORT)
    assert whole.metrics["stage1_epochs"] > epoch
    with pytest.raises(Crash):
        pactrain.fit(problem(0.35)[0], data, preset=SHORT, out=tmp_path / "run", callbacks=[crash])
    events: list[Event] = []
    again = pactrain.fit(
        problem(0.35)[0], data, preset=SHORT, out=tmp_path / "run", resume=True, callbacks=[events.append]
    )
    assert epochs_of(events)[0] == epoch + 1
    assert again.metrics["held_gamma"] == whole.metrics["held_gamma"]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name


def test_a_short_budget_is_spent_on_the_guess() -> None:
    model, data = problem(0.35)
    few = pactrain.fit(model, data, preset=SHORT, budget="8 epochs")
    guess = pactrain.fit(problem(0.35)[0], data, preset=SHORT.replace(held="left out"), budget="8 epochs")
    assert few.metrics["held_gamma"] == guess.metrics["held_gamma"]
    assert all(torch.equal(v, guess.model.state_dict()[k]) for k, v in few.model.state_dict().items())


def test_a_walk_cut_short_by_the_budget_ends_at_its_best() -> None:
    result = pactrain.fit(*problem(0.35), preset=SHORT, budget="18 epochs")  # two epochs after the first question
    tried = result.metrics["left_out"]
    assert len(tried) == 1
    assert result.metrics["held_gamma"] == tried[0]["gamma"]
    assert result.metrics["stage1"]["risk"] == result.history[15]["risk"]


def test_a_second_stage_after_the_walk_keeps_to_the_budget() -> None:
    rules = SHORT.replace(stage2_share=0.5, enter_stage2=0.0)
    result = pactrain.fit(*problem(0.35), preset=rules, budget="12 epochs")
    assert len(result.history) <= 12
    assert result.metrics["stage2_epochs"] > 0


def test_regression_keeps_its_first_gamma() -> None:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(150, 20, generator=source)
    y = x[:, :4].sum(1) / 2 + 0.5 * torch.randn(150, generator=source)
    found = pactrain.fit(mlp(20, 1, seed=0), (x, y), preset=SHORT)
    assert found.metrics["left_out"] is None
    guess = pactrain.fit(mlp(20, 1, seed=0), (x, y), preset=SHORT.replace(held="left out"))
    assert found.metrics["held_gamma"] == guess.metrics["held_gamma"] != AUTO.gamma_max
