"""The page of a run: what it says, that it can be trusted with any name, and that it is made from the folder alone."""

import dataclasses
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import pactrain
from pactrain.report import summaries, write_figures, write_report
from pactrain.report.canvas import rendered, thin
from pactrain.report.figures import comparisons, figures
from pactrain.report.page import drawings, page
from pactrain.report.read import Run, read_run
from pactrain.report.words import duration, headline, proved, shown
from pactrain.rules.presets import AUTHORS
from pactrain.runtime.errors import RunError
from tests.zoo import build, rows

HOSTILE = "<script>alert('1')</script> & \"$x_1$\" 网"


def hostile() -> nn.Module:
    """A network with a group that no page should trust."""
    model = nn.Sequential()
    model.add_module(HOSTILE.replace(".", ""), nn.Linear(6, 3))
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both kinds: classes in two stages, numbers, hostile names."""
    root = tmp_path_factory.mktemp("runs")
    two = AUTHORS.replace(enter_stage2=0.0, stage2_share=0.5)
    x, y = rows()
    config = {"data": {"name": "flowers"}, "model": "mlp"}
    pactrain.fit(
        build("mlp"),
        (x, y),
        test=rows(30, seed=2),
        preset=two,
        budget="9 epochs",
        out=root / "classes",
        extra_config=config,
    )
    pactrain.fit(
        build("mlp"),
        (x, y),
        test=rows(30, seed=2),
        budget="12 epochs",
        out=root / "other",
        seed=1,
        extra_config=config,
    )
    pactrain.fit(nn.Linear(6, 1), (x, x[:, :1].clone()), budget="5 epochs", out=root / "numbers")
    named = {"data": {"name": HOSTILE + ".csv"}, "model": HOSTILE}
    pactrain.fit(hostile(), (x, y), test=(x, y), budget="3 epochs", out=root / "hostile", extra_config=named)
    return root


class Outline(HTMLParser):
    """Collects tags, ids and headings, and sees to it that every element is closed."""

    VOID = ("meta", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.levels: list[int] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "action", "xlink:href")]
        self.levels += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


NAMES = ("classes", "other", "numbers", "hostile")


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, str]:
    """The page of each run as `fit` wrote it, and one of all runs."""
    found = {name: (folder / name / "report.html").read_text() for name in NAMES}
    return found | {"all": page([read_run(folder / name) for name in NAMES])}


def test_fit_writes_the_page_that_the_folder_gives(folder: Path) -> None:
    assert (folder / "hostile" / "report.html").read_text() == page([read_run(folder / "hostile")])


def test_pages_are_sound_and_ask_for_nothing(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        outline = Outline(text)
        assert not {"script", "img", "iframe", "object", "form", "image"} & set(outline.tags), name
        assert all(link.startswith("#") or link == "data:," for link in outline.links), name
        assert "url(" not in text.replace("url(#", "")
        assert "@import" not in text
        assert len(outline.ids) == len(set(outline.ids)), name
        assert {link[1:] for link in outline.links if link.startswith("#")} <= set(outline.ids), name
        assert outline.levels[0] == 1
        assert outline.levels.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(outline.levels, outline.levels[1:], strict=False)), name
        assert len(text.encode()) < 1_000_000


def test_every_name_is_escaped_and_shown_as_it_is(pages: dict[str, str]) -> None:
    text = pages["hostile"]
    assert "<script" not in text
    assert "alert(&#x27;1&#x27;)" in text
    assert unescape(text).count(HOSTILE) >= 3


def test_what_the_page_says(folder: Path, pages: dict[str, str]) -> None:
    run = read_run(folder / "classes")
    text = unescape(pages["classes"]).replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "flowers",
        f"{run.weights:,} weights",
        "seed 0",
        "6 + 3 epochs in two stages",
        f"{100 * run.metrics['test']['accuracy']:.2f} %",
        "accuracy on 30 held-out test examples",
        "holds with the stated confidence".capitalize(),
        "Would be certified if",
        "A number for comparing runs",
        "Stage 2 begins after epoch 6",
        "K̃(λ)",
        "Everything that determined the run",
        '"fixed_epochs": 500',
    ):
        assert words in text, words
    assert run.certificate is not None
    for s in run.certificate.statements:
        assert s.quantity in text


def test_figures_show_the_history(folder: Path) -> None:
    run = read_run(folder / "classes")
    drawn = {d.name: d for d in figures(run)}
    assert set(drawn) == {"bound", "accuracy", "loss", "gap", "stds", "moment"}
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
    assert {d.name for d in figures(read_run(folder / "numbers"))} == {"bound", "rmse", "loss", "stds", "moment"}


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


def test_several_runs_side_by_side(folder: Path, pages: dict[str, str]) -> None:
    runs = [read_run(folder / name) for name in NAMES]
    for run in runs:
        assert f">{run.name}</h2>" in pages["all"]
        assert f"<td>{run.name}</td>" in pages["all"]
    overlaid = comparisons(runs)
    assert [d.name for d in overlaid] == [f"compared-1-{k}" for k in ("accuracy", "bound", "loss", "gap")]
    assert all("classes" in d.alt and "other" in d.alt and "numbers" not in d.alt for d in overlaid)


def test_figures_as_files(folder: Path, tmp_path: Path) -> None:
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for form, start in starts.items():
        files = write_figures([folder / "numbers"], tmp_path / form, form)  # type: ignore[arg-type]
        assert {f.name for f in files} == {f"{k}.{form}" for k in ("bound", "rmse", "loss", "stds", "moment")}
        assert all(f.read_bytes().startswith(start) for f in files)
    several = drawings([read_run(folder / name) for name in NAMES])
    assert len({d.name for d in several}) == len(several) == 27


def test_a_changed_certificate_proves_nothing(tmp_path: Path) -> None:
    x = torch.randn(600, 6, generator=torch.Generator().manual_seed(0))
    y, folder = (x[:, 0] > 0).long(), tmp_path / "apart"
    pactrain.fit(nn.Linear(6, 2), (x[:300], y[:300]), test=(x[300:], y[300:]), budget="30 epochs", out=folder)
    run = read_run(folder)
    assert headline(run) is not None
    assert run.certificate is not None
    first = dataclasses.replace(run.certificate.statements[0], value=0.001)
    edited = dataclasses.replace(run.certificate, statements=(first, *run.certificate.statements[1:]))
    assert not edited.recheck()
    (tmp_path / "run").mkdir()
    for file in ("config.json", "history.jsonl", "metrics.json"):
        (tmp_path / "run" / file).write_bytes((folder / file).read_bytes())
    (tmp_path / "run" / "certificate.json").write_text(json.dumps(edited.to_dict()))
    changed = read_run(tmp_path / "run")
    assert headline(changed) is None
    assert "was changed" in proved(changed)
    assert "0.1" not in unescape(page([changed])).split("What can be said")[1].split("How training")[0]


def test_a_run_that_is_going_on_has_a_page(folder: Path, tmp_path: Path) -> None:
    going = tmp_path / "going"
    going.mkdir()
    (going / "config.json").write_bytes((folder / "classes" / "config.json").read_bytes())
    assert "not come to its end" in page([read_run(going)])
    lines = (folder / "classes" / "history.jsonl").read_text()
    (going / "history.jsonl").write_text(lines[: len(lines) - 40])  # killed while writing
    run = read_run(going)
    assert len(run.history) == 8
    assert "going on" in page([run, read_run(folder / "classes")])
    (going / "history.jsonl").write_text("{\n" + lines)
    with pytest.raises(RunError, match="line 1"):
        read_run(going)
    with pytest.raises(RunError, match=r"no config\.json"):
        write_report([tmp_path / "nothing"])


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


def test_a_report_that_fails_does_not_cost_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> str:
        raise OSError("no ink")

    monkeypatch.setattr("pactrain.report.page.page", broken)
    result = pactrain.fit(nn.Linear(6, 3), rows(), budget="1 epochs", out=tmp_path / "run")
    assert "no ink" in result.notes[-1]
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["notes"] == result.notes
    monkeypatch.undo()
    assert write_report([tmp_path / "run"]) == tmp_path / "run" / "report.html"
    assert write_report([tmp_path / "run"], tmp_path) == tmp_path / "report.html"
    assert write_report([tmp_path / "run"], tmp_path / "pages") == tmp_path / "pages" / "report.html"


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
    assert [duration(s) for s in (1.25, 75, 7300)] == ["1.2 s", "1 min 15 s", "2 h 1 min"]


def test_command(folder: Path, pages: dict[str, str], tmp_path: Path) -> None:
    words = ["report", *(str(folder / name) for name in NAMES), "--json", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "pactrain", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert told["report"] == "report.html"
    assert told["figures"] == []
    assert (tmp_path / "report.html").read_text() == pages["all"]
    assert told["runs"] == json.loads(json.dumps(summaries([folder / name for name in NAMES])))
    assert "Report: report.html" in done.stderr


def test_importing_pactrain_imports_no_matplotlib() -> None:
    code = "import sys, pactrain, pactrain.report\nassert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_with_no_names_of_its_own() -> None:
    assert Run("x", {}).data == "your own data"


def test_epochs_are_marked_at_whole_numbers(folder: Path) -> None:
    found = figures(read_run(folder / "hostile"))
    over_epochs = [d.figure for d in found if any(a.get_xlabel().startswith("epoch") for a in d.figure.axes)]
    assert over_epochs
    for figure in over_epochs:
        rendered(figure, "svg")
        for axes in figure.axes:
            assert all(tick == round(tick) for tick in axes.get_xticks()), axes.get_xticks()
