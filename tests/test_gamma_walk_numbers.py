"""The walk in γ where numbers are learned: one step down at most."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.models.mlp import mlp
from pactrain.rules.gamma.trained_leave_one_out import Answer
from pactrain.rules.gamma.walk import LEAST_EXPLAINED, STEP, GammaWalk
from pactrain.rules.presets import AUTO
from pactrain.runs import folder as runs
from pactrain.runtime.events import Event
from tests.test_runs import epochs_of

SHORT = AUTO.replace(fixed_epochs=16)


def numbers_walked(*answers: tuple[float, float]) -> GammaWalk:
    """The answers are losses and slopes; one answer for all would have a loss of 2, and losses up to 1 are believed."""
    walk = GammaWalk(100.0, 40, 2000.0, numbers=True, credible=1.0)
    for k, (loss, slope) in enumerate(answers):
        if not walk.go_on(Answer(loss, slope, loss / 2), 40.0 + 10 * k, seen=0.9 * loss):
            break
    return walk


def test_for_numbers_it_takes_one_step_down_if_that_explains_more() -> None:
    further = numbers_walked((0.5, 0.1), (0.5 - 2.1 * LEAST_EXPLAINED, 0.1), (0.3, 0.1))
    assert list(further.answers) == [0, 1]
    assert further.gamma == pytest.approx(100 / STEP)
    assert numbers_walked((0.5, 0.1), (0.5 - 1.9 * LEAST_EXPLAINED, 0.1)).gamma == 100


def test_for_numbers_it_stays_where_the_network_is_not_too_sure_or_its_answer_not_believed() -> None:
    assert list(numbers_walked((0.5, -0.1), (0.1, 0.1)).answers) == [0]
    assert list(numbers_walked((1.1, 0.1), (0.1, 0.1)).answers) == [0]


def numbers() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(150, 20, generator=source)
    return mlp(20, 1, seed=0), (x, x[:, :4].sum(1) / 2 + 0.5 * torch.randn(150, generator=source))


@pytest.mark.parametrize("crash", [59, 66])
def test_numbers_are_asked_about_and_a_step_in_vain_leaves_nothing_behind(
    crash: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)

    def stop(event: Event) -> None:
        if event.phase == "train" and event.done == crash:
            raise RuntimeError("the power goes off")

    rules, (model, data) = AUTO.replace(fixed_epochs=60), numbers()
    whole, guess = (
        pactrain.fit(m, data, preset=r) for m, r in ((model, rules), (numbers()[0], rules.replace(held="left out")))
    )
    first, second = whole.metrics["left_out"]
    assert first["slope"] > 0
    assert second["gamma"] == pytest.approx(first["gamma"] / STEP)
    assert second["loss"] > first["loss"]
    torch.testing.assert_close(list(model.parameters()), list(guess.model.parameters()), rtol=1e-4, atol=1e-6)
    with pytest.raises(RuntimeError, match="power"):
        pactrain.fit(numbers()[0], data, preset=rules, out=tmp_path / "run", callbacks=[stop])
    events: list[Event] = []
    again = pactrain.fit(numbers()[0], data, preset=rules, out=tmp_path / "run", resume=True, callbacks=[events.append])
    assert epochs_of(events)[0] == crash + 1
    assert again.metrics["left_out"] == whole.metrics["left_out"]
    assert torch.equal(again.posterior.log_std, whole.posterior.log_std)
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), model.parameters(), strict=True))


def with_decay(predict: Any, batch: Any) -> Tensor:
    """A loss that looks at the network itself."""
    x, y = batch
    return torch.as_tensor((predict(x)[:, 0] - y).square() + 1e-4 * sum(p.square().sum() for p in predict.parameters()))


@pytest.mark.parametrize(("loss", "bound"), [("l1", "auto"), (with_decay, "auto"), ("mse", "subgaussian")])
def test_where_nothing_can_be_asked_the_first_gamma_is_kept(loss: Any, bound: str) -> None:
    model, data = numbers()
    result = pactrain.fit(model, data, loss=loss, bound=bound, preset=SHORT)
    assert result.metrics["left_out"] is None
    assert result.metrics["stage1_epochs"] == 16


def test_what_the_linearised_network_saw_decides_what_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = numbers()
    assert len(pactrain.fit(model, data, preset=SHORT).metrics["left_out"]) == 2
    monkeypatch.setattr("pactrain.training.gamma_search.CREDIBLE", 1e-6)
    assert len(pactrain.fit(numbers()[0], data, preset=SHORT).metrics["left_out"]) == 1


def test_a_run_of_a_version_that_did_not_walk_goes_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)

    def stop(event: Event) -> None:
        if event.phase == "train" and event.done == 9:
            raise RuntimeError("the power goes off")

    data = numbers()[1]
    with monkeypatch.context() as before:
        before.setattr("pactrain.rules.gamma.walk.MOST_WEIGHTS", 0)
        with pytest.raises(RuntimeError, match="power"):
            pactrain.fit(numbers()[0], data, preset=SHORT, out=tmp_path / "run", callbacks=[stop])
    result = pactrain.fit(numbers()[0], data, preset=SHORT, out=tmp_path / "run", resume=True)
    assert result.metrics["left_out"] is None
    assert result.metrics["stage1_epochs"] == 16
