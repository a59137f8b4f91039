"""Run folders: what they hold, and how a run ends, is cut short and goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import pactrain
from pactrain import Posterior
from pactrain.rules.presets import PRESETS
from pactrain.runs.weight_files import load_posterior
from pactrain.runtime.errors import RunError
from pactrain.runtime.events import Event
from pactrain.training import history
from tests.interruptions import Crash, epochs_of, interrupt_at
from tests.zoo import SHORT, build, rows, weights


@pytest.mark.parametrize("preset", ["auto", "authors"])
@pytest.mark.parametrize("name", ["mlp", "batchnorm", "tied"])
def test_resumed_run_is_bitwise_the_uninterrupted_one(
    name: str, preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(
        history, "MEASUREMENTS", 3
    )  # so that a measurement falls before a crash and is repeated after it
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
        "analysis.json",
        "calibration.safetensors",
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
    posterior = load_posterior(out, Posterior(twin))
    assert torch.equal(weights(twin), weights(result.model))
    assert posterior.kl().item() == pytest.approx(result.posterior.kl().item(), rel=1e-6)
    with pytest.raises(RunError, match="already exists"):
        pactrain.fit(build("mlp"), (x, y), out=out)
    with pytest.raises(RunError, match="is no folder"):
        pactrain.fit(build("mlp"), (x, y), out=out / "config.json")
    with pytest.raises(RunError, match="complete"):
        pactrain.fit(build("mlp"), (x, y), out=out, resume=True)


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        pactrain.fit(build("mlp"), rows(), out=tmp_path / "run", callbacks=[interrupt_at(1, Crash)])
    with pytest.raises(RunError, match="seed: 0 there, 1 now"):
        pactrain.fit(build("mlp"), rows(), out=tmp_path / "run", resume=True, seed=1)


def test_an_interrupted_run_can_be_used_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
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
