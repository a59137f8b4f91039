"""Run folders: what they hold, and how a run ends, is cut short and goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import Posterior
from pactrain.rules.presets import AUTO, PRESETS
from pactrain.runs import folder as runs
from pactrain.runtime.errors import RunError, TrainingError
from pactrain.runtime.events import Event
from pactrain.training import history
from tests.test_fit import SHORT, weights
from tests.zoo import build, rows


def interrupt_at(epoch: int, error: type[BaseException]) -> Any:
    """A callback that raises at the end of an epoch."""

    def callback(event: Event) -> None:
        if event.phase == "train" and event.done == epoch:
            raise error

    return callback


def test_ctrl_c_returns_what_was_reached() -> None:
    result = pactrain.fit(build("mlp"), rows(), callbacks=[interrupt_at(4, KeyboardInterrupt)])
    assert result.interrupted
    assert len(result.history) == 4
    assert result.certificate.recheck()
    assert "interrupted" in result.notes[0]


def epochs_of(events: list[Event]) -> list[int]:
    """The epochs that were trained, as the callbacks were told."""
    return [event.done for event in events if event.phase == "train"]


class Crash(Exception):
    """Stands for the power going off."""


@pytest.mark.parametrize("preset", ["auto", "authors"])
@pytest.mark.parametrize("name", ["mlp", "batchnorm", "tied"])
def test_resumed_run_is_bitwise_the_uninterrupted_one(
    name: str, preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(history, "LOOKS", 3)  # so that a look falls before a crash and is repeated after it
    run: dict[str, Any] = {
        "preset": PRESETS[preset].replace(enter_stage2=0.0, stage2_share=0.5),
        "budget": "9 epochs",
        "test": rows(20, seed=2),
    }
    whole = pactrain.fit(build(name), rows(200), out=tmp_path / "whole", **run)
    assert whole.metrics["stage2_epochs"] > 0
    for epoch, resume in ((2, False), (7, True)):
        options: dict[str, Any] = run | {"resume": resume, "callbacks": [interrupt_at(epoch, Crash)]}
        with pytest.raises(Crash):
            pactrain.fit(build(name), rows(200), out=tmp_path / "cut", **options)
    assert (tmp_path / "cut" / "checkpoint").exists()
    events: list[Event] = []
    again = pactrain.fit(build(name), rows(200), out=tmp_path / "cut", resume=True, callbacks=[events.append], **run)
    assert epochs_of(events) == [8, 9]
    for file in ("model.safetensors", "posterior.safetensors", "certificate.json", "moment.json"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    times = ("seconds",)
    kept = [[{k: v for k, v in r.items() if k not in times} for r in h] for h in (whole.history, again.history)]
    assert json.dumps(kept[0]) == json.dumps(kept[1])
    assert not (tmp_path / "cut" / "checkpoint").exists()


def test_a_crash_after_the_last_epoch_changes_nothing(tmp_path: Path) -> None:
    run: dict[str, Any] = {"bound": "kl", "budget": "3 epochs"}
    whole = pactrain.fit(build("mlp"), rows(), **run)
    with pytest.raises(Crash):
        pactrain.fit(build("mlp"), rows(), out=tmp_path / "cut", callbacks=[interrupt_at(3, Crash)], **run)
    events: list[Event] = []
    again = pactrain.fit(build("mlp"), rows(), out=tmp_path / "cut", resume=True, callbacks=[events.append], **run)
    assert epochs_of(events) == []
    assert torch.equal(again.posterior.log_std, whole.posterior.log_std)
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True))


def test_run_folder_and_its_errors(tmp_path: Path) -> None:
    x, y = rows()
    out = tmp_path / "run"
    result = pactrain.fit(build("mlp"), (x, y), test=(x, y), out=out, budget=SHORT)
    assert result.path == out
    names = {p.name for p in out.iterdir()}
    assert names == {
        "config.json",
        "history.jsonl",
        "metrics.json",
        "model.safetensors",
        "posterior.safetensors",
        "moment.json",
        "certificate.json",
        "report.html",
    }
    lines = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert [r["epoch"] for r in lines] == list(range(1, len(lines) + 1))
    wanted = {"stage", "risk", "train", "test", "kl", "gamma", "bound", "kl_term", "complexity", "prior_std"}
    assert wanted | {"posterior_std"} <= lines[0].keys()
    first = lines[0]
    assert first["bound"] == pytest.approx(first["risk"] + first["kl_term"] + first["complexity"])
    metrics = json.loads((out / "metrics.json").read_text())
    assert {"train", "test", "seconds", "steps", "stage1_epochs", "stage2_epochs"} <= metrics.keys()
    twin = build("mlp", seed=5)
    posterior = runs.load_posterior(out, Posterior(twin))
    assert torch.equal(weights(twin), weights(result.model))
    assert posterior.kl().item() == pytest.approx(result.posterior.kl().item(), rel=1e-6)
    with pytest.raises(RunError, match="already exists"):
        pactrain.fit(build("mlp"), (x, y), out=out)
    with pytest.raises(RunError, match="complete"):
        pactrain.fit(build("mlp"), (x, y), out=out, resume=True)


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        pactrain.fit(build("mlp"), rows(), out=tmp_path / "run", callbacks=[interrupt_at(1, Crash)])
    with pytest.raises(RunError, match="seed: 0 there, 1 now"):
        pactrain.fit(build("mlp"), rows(), out=tmp_path / "run", resume=True, seed=1)


def test_a_loss_that_is_not_finite_says_where_and_keeps_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    calls = 0

    def loss(predict: Any, batch: Any) -> Tensor:
        nonlocal calls
        x, y = batch
        losses = nn.functional.cross_entropy(predict(x), y, reduction="none")
        if torch.is_grad_enabled():
            calls += 1
        return losses * (float("nan") if calls > 3 else 1.0) if torch.is_grad_enabled() else losses

    with pytest.raises(TrainingError, match=r"nan at step 4 \(epoch 4, stage 1\).*group of weights '[02]'"):
        pactrain.fit(build("mlp"), rows(), loss=loss, preset=AUTO.replace(held="gamma_max"), out=tmp_path / "run")
    assert (tmp_path / "run" / "checkpoint" / "state.safetensors").exists()
    assert len((tmp_path / "run" / "history.jsonl").read_text().splitlines()) == 3


def test_an_interrupted_run_can_be_used_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    run: dict[str, Any] = {"budget": "9 epochs"}
    whole = pactrain.fit(build("mlp"), rows(200), out=tmp_path / "whole", **run)
    stop = [interrupt_at(4, KeyboardInterrupt)]
    cut = pactrain.fit(build("mlp"), rows(200), out=tmp_path / "cut", callbacks=stop, **run)
    assert cut.interrupted
    assert (tmp_path / "cut" / "model.safetensors").exists()
    events: list[Event] = []
    again = pactrain.fit(build("mlp"), rows(200), out=tmp_path / "cut", resume=True, callbacks=[events.append], **run)
    assert epochs_of(events) == [5, 6, 7, 8, 9]
    assert torch.equal(weights(again.model), weights(whole.model))
