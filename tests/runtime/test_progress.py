"""What a person sees while work goes on."""

import io
import itertools
from typing import Any

import pytest
from rich.console import Console

import pactrain
from pactrain.rules.presets import AUTHORS, AUTO
from pactrain.runtime.events import Event
from pactrain.runtime.progress import LINE_SECONDS, Bar, watched
from tests.zoo import build, rows


def screen(width: int = 80, *, terminal: bool = True) -> Console:
    """A terminal that keeps what is drawn on it."""
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None, legacy_windows=False)


def written(console: Console) -> str:
    """All that was drawn."""
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def drawn(bar: Bar) -> str:
    """The bar as it stands."""
    assert bar.progress is not None
    out = screen()
    out.print(bar.progress.get_renderable())
    return written(out)


def record(**values: Any) -> dict[str, Any]:
    """What an epoch tells."""
    return {"stage": 1, "risk": 0.0123456, "bound": 0.05, "train": {"accuracy": 1.0}, "test": None} | values


def test_one_bar_for_a_real_run_whose_end_is_the_end() -> None:
    console = screen()
    parts: list[float] = []
    seen: dict[str, str] = {}
    last: dict[str, Any] = {}
    with Bar(console, whole_run=True) as bar:

        def keep(event: Event) -> None:
            parts.append(bar.part)
            seen[event.phase] = drawn(bar)
            if event.phase == "train":
                last.update(event.values)

        pactrain.fit(build("mlp"), rows(), test=rows(20, seed=2), budget="7 epochs", callbacks=[bar, keep])
    assert parts == sorted(parts)
    assert parts[-1] == pytest.approx(1.0)
    assert all(len(text.splitlines()) == 1 for text in seen.values())
    score = f"{100 * last['test']['accuracy']:.1f} %"
    for words in ("training", "epoch 7/7", f"loss {last['risk']:.3g}", f"held out {score}", "85 %"):
        assert words in seen["train"], seen["train"]
    assert "measuring" in seen["scan"]
    assert "100 %" not in seen["certify"]
    assert "100 %" in seen["report"]
    assert "\x1b[" in written(console)


def test_the_scan_ends_at_its_total() -> None:
    events: list[Event] = []
    pactrain.fit(build("mlp"), rows(), budget="2 epochs", callbacks=[events.append])
    last = [e for e in events if e.phase == "scan"][-1]
    assert last.done == last.total


def test_a_search_over_gamma_announces_the_end_of_its_present_segment() -> None:
    events: list[Event] = []
    result = pactrain.fit(build("mlp"), rows(), callbacks=[events.append])
    trained = [e for e in events if e.phase == "train"]
    assert trained[-1].done == trained[-1].total
    totals = [total for total, _ in itertools.groupby(e.total for e in trained)]
    assert totals == sorted(totals)
    assert len(totals) == len(result.metrics["left_out"])


@pytest.mark.parametrize("terminal", [True, False])
def test_a_plan_says_how_much_there_is_to_do(terminal: bool) -> None:
    console = screen(terminal=terminal)
    with Bar(console) as bar:
        bar(Event("runs", 12, 102, {"failed": 0, "left": 2400.0}))
        bar(Event("runs", 13, 102, {"failed": 0, "left": 2370.0, "kind": "gcn", "seconds": 30.0, "error": None}))
    said = written(console)
    assert said.count("to do") == 1
    assert "90 trainings to do, 12 in the store; about 40 min, by what these took" in said


def test_one_time_is_left() -> None:
    bar = Bar(screen())
    bar(Event("runs", 13, 102, {"failed": 2, "left": 2370.0, "kind": "gcn", "seconds": 30.0, "error": None}))
    assert "13/102 gcn, 2 failed" in drawn(bar)
    assert "39:30 left" in drawn(bar)
    assert drawn(bar).count("left") == 1


def test_the_time_left_is_that_of_the_whole_run() -> None:
    moment = [0.0]
    bar = Bar(screen(), whole_run=True, clock=lambda: moment[0])
    bar(Event("scan", 1, 1))
    moment[0] = 0.75
    bar(Event("train", 1, 100, record()))
    moment[0] = 75.0
    bar(Event("train", 100, 100, record()))
    assert "0:15 left" in drawn(bar)  # certifying and summing up are 15 parts beside 75 of training
    moment[0] = 90.0
    bar(Event("report", 1, 1))
    assert "0:00 left" in drawn(bar)


def test_everything_fits_eighty_columns() -> None:
    bar = Bar(screen(), whole_run=True)
    bar(Event("train", 1234, 5000, record(stage=2, test={"accuracy": 0.97553, "loss": 1.0})))
    line = drawn(bar).splitlines()[-1]
    assert "epoch 1234/5000  loss 0.0123  held out 97.6 %" in line
    assert "…" not in line
    assert len(line.rstrip()) <= 80


def test_a_total_that_grows_takes_nothing_back() -> None:
    bar = Bar(screen(), whole_run=True)
    bar(Event("train", 100, 100, record()))
    full = bar.part
    bar(Event("train", 101, 150, record()))
    assert full < bar.part < 1
    bar(Event("train", 150, 150, record()))
    moved = bar.part
    bar(Event("certify", 1, 1))
    bar(Event("report", 1, 1))
    assert moved < 1
    assert bar.part == pytest.approx(1.0)


def test_the_bar_moves_by_what_is_left_of_the_work() -> None:
    bar, parts = Bar(screen(), whole_run=True), []
    for done, total in [(50, 100), (100, 100), (125, 150), (150, 150), (175, 200), (200, 200)]:
        bar(Event("train", done, total, record()))
        parts.append(bar.part)
    assert parts == sorted(set(parts))
    assert parts[1] == pytest.approx(0.75 / 0.9)


def test_without_test_data_the_training_score_is_shown() -> None:
    bar = Bar(screen())
    bar(Event("train", 500, 1000, record(train={"rmse": 2.5})))
    assert "training 2.5" in drawn(bar)


def test_a_limit_on_time_is_counted_in() -> None:
    events: list[Event] = []
    pactrain.fit(
        build("mlp"), rows(), preset=AUTO.replace(fixed_epochs=10**6), budget="0.3s", callbacks=[events.append]
    )
    trained = [e for e in events if e.phase == "train"]
    assert trained[-1].done == trained[-1].total < 10**6
    assert all(e.done <= e.total < 10**6 for e in trained)


def test_a_limit_on_time_is_counted_in_block_by_block() -> None:
    events: list[Event] = []
    rules = AUTO.replace(fixed_epochs=10**6)
    pactrain.fit(build("mlp"), rows(), preset=rules, certificate="progressive", budget="2s", callbacks=[events.append])
    trained = [e for e in events if e.phase == "train"]
    assert trained[-1].done == trained[-1].total
    assert max(e.total for e in trained) < 10**5


def test_blocks_between_trainings_take_no_part_of_the_bar() -> None:
    bar, parts = Bar(screen(), whole_run=True), []
    for done in (50, 100, 150):
        bar(Event("train", done, 150, record()))
        trained = bar.part
        bar(Event("block", done // 50, 3))
        parts += [trained, bar.part]
    assert parts == pytest.approx([part / 0.9 for part in (0.25, 0.25, 0.5, 0.5, 0.75, 0.75)])


@pytest.mark.parametrize("stage2", [0.0, 0.5])
def test_the_total_is_met_at_the_end_of_each_stage(stage2: float) -> None:
    events: list[Event] = []
    rules = AUTHORS.replace(enter_stage2=0.0, stage2_share=stage2)
    pactrain.fit(build("mlp"), rows(), preset=rules, budget="9 epochs", callbacks=[events.append])
    told = [(e.done, e.total, e.values["stage"]) for e in events if e.phase == "train"]
    assert told[-1][:2] == (9, 9)
    assert {total for _, total, _ in told} == ({9} if stage2 == 0.0 else {6, 9})


def test_where_there_is_no_terminal_a_line_comes_now_and_then() -> None:
    console = screen(terminal=False)
    moment = [0.0]

    def clock() -> float:
        return moment[0]

    with Bar(console, whole_run=True, clock=clock) as bar:
        for epoch in range(1, 41):
            moment[0] = LINE_SECONDS * epoch / 20
            bar(Event("train", epoch, 40, record()))
    lines = written(console).splitlines()
    assert len(lines) == 2
    assert "training, 42 %, epoch 20/40" in lines[0]
    assert "left" in lines[0]


def test_fit_draws_only_if_asked_or_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    pactrain.fit(build("mlp"), rows(), budget="2 epochs")
    assert capsys.readouterr() == ("", "")
    own: list[Event] = []
    with watched([own.append], progress=None) as callbacks:
        assert callbacks == [own.append]
    with watched([own.append], progress=True) as callbacks:
        assert [type(c) for c in callbacks[1:]] == [Bar]
