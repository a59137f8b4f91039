"""Ctrl-C: training stops between steps and what was reached is returned; scan, certificate and report end at once."""

import signal
from pathlib import Path

import pytest

import pactrain
from pactrain.runtime.events import Event
from pactrain.runtime.progress import Bar
from tests.faults.command import command
from tests.interruptions import epochs_of, interrupt_at
from tests.zoo import build, rows


def test_ctrl_c_returns_what_was_reached() -> None:
    result = pactrain.fit(build("mlp"), rows(), callbacks=[interrupt_at(4, KeyboardInterrupt)])
    assert result.interrupted
    assert len(result.history) == 4
    assert result.certificate.recheck()
    assert "interrupted" in result.notes[0]


def test_ctrl_c_stops_between_steps_and_a_second_fit_is_told_of_the_first() -> None:
    def press(event: Event) -> None:
        if event.phase == "train" and event.done == 2:
            signal.raise_signal(signal.SIGINT)

    model = build("mlp")
    handler = signal.getsignal(signal.SIGINT)
    first = pactrain.fit(model, rows(), callbacks=[press])
    assert first.interrupted
    assert len(first.history) == 2
    assert signal.getsignal(signal.SIGINT) is handler
    second = pactrain.fit(model, rows(), budget="1 epoch")
    assert any("trained the network before" in c.reason for c in second.certificate.caveats)
    assert "certified" not in {s.label for s in second.certificate.statements}


def test_ctrl_c_ends_the_scan_at_once() -> None:
    seen = []

    def press(event: Event) -> None:
        seen.append(event.phase)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pactrain.fit(build("mlp"), rows(), callbacks=[press])
    assert seen == ["scan"] * 3
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_ends_the_certificate_at_once_and_the_training_is_kept(tmp_path: Path) -> None:
    def press(event: Event) -> None:
        if event.phase == "certify":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as ended:
        pactrain.fit(build("mlp"), rows(), budget="3 epochs", out=tmp_path / "run", callbacks=[press])
    assert "go on with resume=True (--resume)" in ended.value.__notes__[0]
    assert not (tmp_path / "run" / "certificate.json").exists()
    trained: list[Event] = []
    pactrain.fit(build("mlp"), rows(), budget="3 epochs", out=tmp_path / "run", callbacks=[trained.append], resume=True)
    assert epochs_of(trained) == []
    pactrain.fit(build("mlp"), rows(), budget="3 epochs", out=tmp_path / "whole")
    for name in ("model.safetensors", "posterior.safetensors", "certificate.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_command_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(_: Bar, event: Event) -> None:
        if event.phase == "certify":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Bar, "__call__", press)
    code, said = command("train", "--data", "iris", "--budget", "3 epochs", "--out", tmp_path / "run")
    assert code == 130
    assert f"the training is kept in {tmp_path / 'run'}" in said
