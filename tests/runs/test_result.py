"""How a result shows itself, in a terminal and in a notebook."""

import html
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import pactrain
from pactrain.runtime.errors import PactrainError
from tests.zoo import build, rows


@pytest.fixture(scope="module")
def result() -> pactrain.Result:
    """A short run without a folder, whose layer has a name that no page should trust."""
    model = nn.Sequential()
    model.add_module("<script>", nn.Linear(6, 3))
    return pactrain.fit(model, rows(), test=rows(20, seed=2), budget="3 epochs")


def test_repr_names_what_accuracy_hides_where_classes_are_uneven() -> None:
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 1.2).long()
    found = pactrain.fit(build("mlp"), (x[:100], y[:100]), test=(x[100:], y[100:]), budget="20 epochs")
    assert "balanced accuracy" in repr(found)


def test_repr_is_five_lines(result: pactrain.Result) -> None:
    lines = repr(result).splitlines()
    assert len(lines) == 5
    assert "rows to train, 20 held out" in lines[0]
    assert "on held-out rows (guessing the largest class:" in lines[1]
    assert "result.report()" in lines[-1]


def test_notebooks_show_sentences_with_every_word_escaped(result: pactrain.Result) -> None:
    assert "on held-out rows" in result._repr_html_()
    assert all(
        html.escape(line.strip()) in result.certificate._repr_html_() for line in str(result.certificate).splitlines()
    )
    shown = result.posterior._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "21" in shown  # weights of the one group


def test_a_report_without_a_folder_goes_to_a_file_of_its_own(result: pactrain.Result, tmp_path: Path) -> None:
    page = result.report()
    assert page.path.read_text() == page.html
    assert repr(page) == f"Report: {page.path}"
    inside = html.unescape(page._repr_html_().split('srcdoc="')[1].split('"')[0])
    assert inside == page.html
    assert result.report(tmp_path / "own.html").path.exists()
    with pytest.raises(PactrainError, match="could not be written"):
        result.report(tmp_path)
    with pytest.raises(PactrainError, match="not made by fit"):
        replace(result, draw=None).report()


def test_with_a_folder_it_is_the_folders_report(tmp_path: Path) -> None:
    found = pactrain.fit(build("mlp"), rows(), budget="2 epochs", out=tmp_path / "run")
    written = (tmp_path / "run" / "report.html").read_text()
    page = found.report()
    assert page.path == tmp_path / "run" / "report.html"
    assert page.html == written


def test_all_scores_are_in_the_metrics(result: pactrain.Result) -> None:
    assert {"loss", "accuracy", "n", "nll", "ece", "balanced_accuracy", "f1", "auc", "recall"} == set(
        result.metrics["test"]
    )
    assert set(result.metrics["rivals"]) == {"constant", "linear"}
    numbers = pactrain.fit(nn.Linear(6, 1), (rows()[0], rows()[0][:, :1].clone()), budget="2 epochs")
    assert {"rmse", "mae", "r2", "spread"} <= set(numbers.metrics["train"])
    assert torch.isfinite(torch.tensor(numbers.metrics["train"]["r2"]))
