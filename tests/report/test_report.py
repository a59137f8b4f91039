"""The page of a run: what it says, and that it is made from the folder alone."""

import dataclasses
import json
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import pactrain
from pactrain.report import summaries, write_report
from pactrain.report.figures import comparisons
from pactrain.report.page import page
from pactrain.report.read import Run, read_run
from pactrain.report.words import headline, proved
from pactrain.runtime.errors import RunError
from tests.report.outline import NAMES, Outline
from tests.zoo import rows


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


def test_what_the_page_says(folder: Path, pages: dict[str, str]) -> None:
    run = read_run(folder / "classes")
    text = unescape(pages["classes"]).replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "flowers",
        f"{run.weights:,} weights",
        "seed 0",
        "6 + 3 epochs in two stages",
        f"{100 * run.metrics['test']['accuracy']:.1f} %",
        "accuracy on 30 held-out rows",
        "holds with the stated confidence".capitalize(),
        "Would be certified if",
        "A number for comparing runs",
        "Stage 2 begins after epoch 6",
        "K̃(λ)",
        "Everything that determined the run",
        '"fixed_epochs": 500',
        "sets of the classes that have a probability of at least",
        "certified: 90 % coverage from 30 test rows (split conformal)",
    ):
        assert words in text, words
    assert run.certificate is not None
    for s in run.certificate.statements:
        assert s.quantity in text


def test_several_runs_side_by_side(folder: Path, pages: dict[str, str]) -> None:
    runs = [read_run(folder / name) for name in NAMES]
    for run in runs:
        assert f">{run.name}</h2>" in pages["all"]
        assert f"<td>{run.name}</td>" in pages["all"]
    overlaid = comparisons(runs)
    assert [d.name for d in overlaid] == [f"compared-1-{k}" for k in ("accuracy", "bound", "loss", "gap")]
    assert all("classes" in d.alt and "other" in d.alt and "numbers" not in d.alt for d in overlaid)


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
    assert "0.1" not in unescape(page([changed])).split("What can be said")[1].split("The noise and the bound")[0]


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


def test_a_run_with_no_names_of_its_own() -> None:
    assert Run("x", {}).data == "your own data"
