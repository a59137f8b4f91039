"""The model card of a run."""

import json
import re
from pathlib import Path

import pytest
from torch import nn

import pactrain
from pactrain import PactrainError
from pactrain.runs.card import card_of
from tests.zoo import build, rows


def test_metadata_and_certificate(tmp_path: Path) -> None:
    cards = pytest.importorskip("huggingface_hub")
    result = pactrain.fit(build("mlp"), rows(), test=rows(30, seed=2), budget="3 epochs", out=tmp_path / "mine")
    text = card_of(tmp_path / "mine")
    card = cards.ModelCard(text)
    assert card.data.library_name == "pactrain"
    found = {r.metric_type: r.metric_value for r in card.data.eval_results}
    assert found["accuracy"] == result.metrics["test"]["accuracy"]
    assert {r.dataset_name for r in card.data.eval_results} == {"not named, held-out rows"}
    assert f"```text\n{result.certificate}\n```" in text
    assert result.certificate.digest in text
    assert 'pactrain.load(".", network)' in text


def test_regression_without_held_out_rows(tmp_path: Path) -> None:
    x, _ = rows()
    result = pactrain.fit(nn.Linear(6, 1), (x, x[:, :1]), budget="3 epochs", out=tmp_path / "run")
    metadata = re.findall(r"^model-index: (.*)$", card_of(tmp_path / "run"), re.MULTILINE)
    (entry,) = json.loads(metadata[0])[0]["results"]
    assert entry["task"] == {"type": "regression"}
    assert {"type": "rmse", "value": result.metrics["train"]["rmse"]} in entry["metrics"]
    assert entry["dataset"]["name"].endswith("training rows")


def test_names_from_files_are_only_text(tmp_path: Path) -> None:
    pactrain.fit(build("mlp"), rows(), budget="1 epoch", out=tmp_path / "run")
    file = tmp_path / "run" / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps(config | {"data": {"name": "a\x1b[2J`<script>[x](y).csv"}}))
    body = card_of(tmp_path / "run").split("---\n", 2)[2]
    assert "\x1b" not in body
    assert "<script" not in body
    assert "[x](" not in body


def test_an_unfinished_run_has_no_card(tmp_path: Path) -> None:
    with pytest.raises(PactrainError, match="holds no completed run"):
        card_of(tmp_path)
