"""What a person sees while training goes on."""

import io
from typing import Any

import pytest
from rich.console import Console

import pactrain
from pactrain.cli.output import Bars
from pactrain.rules.presets import AUTHORS, AUTO
from pactrain.runtime.events import Event
from tests.zoo import build, rows


def screen(width: int = 80, *, terminal: bool = True) -> Console:
    """A terminal that keeps what is drawn on it."""
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None, legacy_windows=False)


def drawn(bars: Bars) -> str:
    """The bars as they stand."""
    assert bars.progress is not None
    out = screen()
    out.print(bars.progress.get_renderable())
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_a_real_run_shows_what_was_asked_for() -> None:
    console = screen()
    seen: dict[str, str] = {}
    last: dict[str, Any] = {}
    with Bars(console) as bars:

        def keep(event: Event) -> None:
            seen[event.phase] = drawn(bars)
            if event.phase == "train":
                last.update(event.values)

        pactrain.fit(build("mlp"), rows(), test=rows(20, seed=2), budget="7 epochs", callbacks=[bars, keep])
    train = seen["train"].splitlines()[-1]
    score = f"{100 * last['test']['accuracy']:.1f} %"
    for words in (
        "train",
        "epoch 7/7",
        "stage 1",
        f"loss {last['risk']:.3g}",
        f"bound {last['bound']:.3g}",
        f"test {score}",
        "00:0",
    ):
        assert words in train, train
    assert "std" in seen["scan"]
    assert "certify" in seen["certify"]
    assert "\x1b[" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_plan_says_how_much_there_is_to_do(terminal: bool) -> None:
    console = screen(terminal=terminal)
    with Bars(console) as bars:
        bars(Event("runs", 12, 102, {"failed": 0, "left": 2400.0}))
        bars(Event("runs", 13, 102, {"failed": 0, "left": 2370.0, "kind": "gcn", "seconds": 30.0, "error": None}))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said.count("to do") == 1
    assert "90 trainings to do, 12 in the store; about 40 min, by what these took" in said


def test_everything_fits_eighty_columns() -> None:
    bars = Bars(screen())
    record = {
        "stage": 2,
        "risk": 0.0123456,
        "bound": 0.0567891,
        "train": {},
        "test": {"accuracy": 0.97553, "loss": 1.0},
    }
    bars(Event("certify", 1900, 2000))
    bars(Event("train", 1234, 5000, record))
    line = drawn(bars).splitlines()[-1]
    assert "epoch 1234/5000 stage 2 loss 0.0123 bound 0.0568 test 97.6 %" in line
    assert "…" not in line
    assert len(line.rstrip()) <= 80


def test_without_test_data_the_training_score_is_shown() -> None:
    bars = Bars(screen())
    record = {"stage": 1, "risk": 1.0, "bound": 1.0, "train": {"rmse": 2.5}, "test": None}
    bars(Event("train", 500, 1000, record))
    assert "train 2.5" in drawn(bars)


def test_a_limit_on_time_is_counted_in() -> None:
    events: list[Event] = []
    pactrain.fit(
        build("mlp"), rows(), preset=AUTO.replace(fixed_epochs=10**6), budget="0.3s", callbacks=[events.append]
    )
    trained = [e for e in events if e.phase == "train"]
    assert trained[-1].done == trained[-1].total < 10**6
    assert all(e.done <= e.total < 10**6 for e in trained)


@pytest.mark.parametrize("stage2", [0.0, 0.5])
def test_the_total_is_met_at_the_end_of_each_stage(stage2: float) -> None:
    events: list[Event] = []
    rules = AUTHORS.replace(enter_stage2=0.0, stage2_share=stage2)
    pactrain.fit(build("mlp"), rows(), preset=rules, budget="9 epochs", callbacks=[events.append])
    told = [(e.done, e.total, e.values["stage"]) for e in events if e.phase == "train"]
    assert told[-1][:2] == (9, 9)
    assert {total for _, total, _ in told} == ({9} if stage2 == 0.0 else {6, 9})


@pytest.mark.parametrize("total", [1, 3])
def test_nothing_is_drawn_where_nobody_looks(total: int) -> None:
    console = screen(terminal=False)
    with Bars(console) as bars:
        for done in range(total):
            bars(Event("scan", done + 1, total, {"std": 0.1}))
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
