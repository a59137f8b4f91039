"""The figures of a report: they show what the history holds, on the page and as files."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

import pactrain
from pactrain.report import write_figures
from pactrain.report.canvas import rendered, thin
from pactrain.report.figures import figures
from pactrain.report.page import drawings, page
from pactrain.report.read import read_run
from pactrain.report.words import duration
from pactrain.runs.sentences import number as shown
from tests.report.outline import NAMES
from tests.zoo import rows

NUMBERS = {"predicted", "residuals", "bound", "rmse", "loss", "stds", "moment"}
"""Figures of a regression without held-out rows."""


def test_figures_show_the_history(folder: Path) -> None:
    run = read_run(folder / "classes")
    drawn = {d.name: d for d in figures(run)}
    assert set(drawn) == {"reliability", "importance", "bound", "accuracy", "loss", "stds", "moment", "gap"}
    last = run.history[-1]
    for key in ("bound", "risk", "kl_term", "complexity"):
        assert shown(last[key]) in drawn["bound"].alt
    lines = drawn["bound"].figure.axes[0].get_lines()
    assert data(lines[0])[1][-1] == last["bound"]
    assert any(data(line)[0][0] == 6.5 for line in lines)
    assert shown(100 * last["test"]["accuracy"]) in drawn["gap"].alt
    for group, std in last["posterior_std"].items():
        assert f"{group} prior" in drawn["stds"].alt
        assert shown(std) in drawn["stds"].alt
    assert {d.name for d in figures(read_run(folder / "numbers"))} == NUMBERS


@pytest.mark.parametrize("name", ["classes", "other"])
def test_the_marked_point_lies_on_the_moments_curve(folder: Path, name: str) -> None:
    """The history's complexity is what the curve, read at the end's prior std, says: two ways to one number."""
    run = read_run(folder / name)
    drawing = next(d for d in figures(run) if d.name == "moment")
    axes = drawing.figure.axes[0]
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    curve = next((v for k, v in lines.items() if k.startswith("at γ")), lines["K̃(λ)"])
    assert ("at γ" in " ".join(lines)) == (name == "other")
    (x, y), ((at, *_), (value, *_)) = data(curve), data(lines["end of training"])
    expected = np.interp(np.log(at), np.log(x), y)
    assert value == pytest.approx(expected, rel=1e-4)


def data(line: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a line was drawn from."""
    return np.asarray(line.get_xdata(), dtype=np.float64), np.asarray(line.get_ydata(), dtype=np.float64)


def test_a_single_epoch_can_be_seen(tmp_path: Path) -> None:
    pactrain.fit(nn.Linear(6, 3), rows(), budget="1 epochs", out=tmp_path / "run")
    drawing = next(d for d in figures(read_run(tmp_path / "run")) if d.name == "bound")
    axes = drawing.figure.axes[0]
    assert data(axes.get_lines()[0])[0].tolist() == list(axes.get_xlim()) == [0.5, 1.5]


def test_many_groups_are_shown_as_they_end(tmp_path: Path) -> None:
    model = nn.Sequential(*(nn.Linear(6, 6) for _ in range(8)), nn.Linear(6, 3))
    pactrain.fit(model, rows(), budget="2 epochs", out=tmp_path / "deep")
    drawing = next(d for d in figures(read_run(tmp_path / "deep")) if d.name == "stds")
    assert [t.get_text() for t in drawing.figure.axes[0].get_yticklabels()] == [str(i) for i in range(9)]


def test_values_that_are_not_finite_are_drawn_around(folder: Path) -> None:
    run = read_run(folder / "other")
    history: list[dict[str, Any]] = json.loads(json.dumps(run.history))
    history[1] |= {"bound": None, "risk": None, "train": {"loss": None, "accuracy": 0.5}}
    gap = dataclasses.replace(run, history=history)
    assert page([gap]).count("<figure") == page([run]).count("<figure")
    drawing = next(d for d in figures(gap) if d.name == "bound")
    drawn = next(data(line)[1] for line in drawing.figure.axes[0].get_lines() if line.get_label() == "bound")
    assert np.flatnonzero(np.isnan(drawn)).tolist() == [1]
    assert np.delete(drawn, 1).tolist() == [r["bound"] for r in run.history if r["epoch"] != 2]


def test_epochs_are_marked_at_whole_numbers(folder: Path) -> None:
    found = figures(read_run(folder / "hostile"))
    over_epochs = [d.figure for d in found if any(a.get_xlabel().startswith("epoch") for a in d.figure.axes)]
    assert over_epochs
    for figure in over_epochs:
        rendered(figure, "svg")
        for axes in figure.axes:
            assert all(tick == round(tick) for tick in axes.get_xticks()), axes.get_xticks()


def test_figures_as_files(folder: Path, tmp_path: Path) -> None:
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for form, start in starts.items():
        files = write_figures([folder / "numbers"], tmp_path / form, form)  # type: ignore[arg-type]
        assert {f.name for f in files} == {f"{k}.{form}" for k in NUMBERS}
        assert all(f.read_bytes().startswith(start) for f in files)
    several = drawings([read_run(folder / name) for name in NAMES])
    assert len({d.name for d in several}) == len(several) == 35


def test_thin_keeps_the_ends() -> None:
    kept = thin(list(range(1000)), 10)
    assert len(kept) == 10
    assert (kept[0], kept[-1]) == (0, 999)
    assert thin([1, 2], 10) == [1, 2]
    assert [shown(v) for v in (0.0123456, 5.0, 123.456, 1234567.0, 1e-7)] == [
        "0.0123",
        "5",
        "123.5",
        "1,234,567",
        "1.00e-07",
    ]
    assert [duration(s) for s in (1.25, 75, 7300)] == ["1.2\N{NO-BREAK SPACE}s", "1 min 15 s", "2 h 1 min"]


def test_importing_pactrain_imports_no_matplotlib() -> None:
    code = "import sys, pactrain, pactrain.report\nassert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
