"""Ctrl-C: training stops between steps, the scan at once, and what was reached is returned."""

import pytest

import pactrain
from pactrain.runtime.events import Event
from tests.interruptions import interrupt_at
from tests.zoo import build, rows


def test_ctrl_c_returns_what_was_reached() -> None:
    result = pactrain.fit(build("mlp"), rows(), callbacks=[interrupt_at(4, KeyboardInterrupt)])
    assert result.interrupted
    assert len(result.history) == 4
    assert result.certificate.recheck()
    assert "interrupted" in result.notes[0]


def test_ctrl_c_stops_between_steps_and_a_second_fit_is_told_of_the_first() -> None:
    import signal

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
    import signal

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
