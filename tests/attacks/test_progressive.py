"""Attacks on the progressive certificate: its record, copies of rows, and a start that knows the rows."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import pactrain
from pactrain import Certificate
from pactrain.cli.explain import explanation
from pactrain.cli.trust import Outside
from tests.attacks.forging import consistent, read
from tests.attacks.forging import pactrain as command
from tests.attacks.test_forgery import unmasked
from tests.zoo import build, rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table of numbers and categories."""
    folder = tmp_path_factory.mktemp("progressive")
    g = np.random.default_rng(0)
    kind = g.choice(["iris", "rose", "tulip"], 300)
    table = pd.DataFrame(
        {"height": g.normal(0, 1, 300) + 5 * (kind == "rose"), "soil": g.choice(["clay", "sand"], 300)}
    )
    table["width"] = g.normal(0, 1, 300) + 5 * (kind == "tulip")
    table["kind"] = kind
    table.to_csv(folder / "flowers.csv", index=False)
    words = [
        "--data",
        folder / "flowers.csv",
        "--target",
        "kind",
        "--certificate",
        "progressive",
        "--test-fraction",
        "0",
    ]
    assert command("train", *words, "--budget", "20 epochs", "--out", folder / "run") == 0
    return folder / "run"


def test_a_table_of_numbers_and_categories_is_certified(run: Path) -> None:
    certificate = Certificate.read(run / "certificate.json")
    (s,) = certificate.statements
    assert (s.bound, s.label, certificate.caveats) == ("progressive", "certified", ())
    assert s.value < 0.3
    assert command("verify", run, "--trust") == 0
    assert command("verify", run / "certificate.json") == 0


def test_no_leaf_of_a_record_can_be_changed(run: Path) -> None:
    found = unmasked(run, Outside(trust=True))
    assert sum(found) > 20  # consistent in themselves


def test_blocks_of_other_sizes_are_found_out(run: Path, tmp_path: Path) -> None:
    """More rows in the record and in what the run noted than its data has."""
    shutil.copytree(run, tmp_path / "run")
    metrics, record = json.loads((run / "metrics.json").read_text()), read(run)
    facts = metrics["certificate"]
    facts["blocks"] = [[10 * n, errors] for n, errors in facts["blocks"]]
    inputs = record["statements"][0]["inputs"]
    record["n"] = inputs["n"] = 10 * inputs["n"]
    inputs["blocks"] = " ".join(f"{n}:{errors}" for n, errors in facts["blocks"])
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "run" / "certificate.json").write_text(json.dumps(consistent(record)))
    assert command("verify", tmp_path / "run" / "certificate.json") == 0  # the arithmetic alone
    assert command("verify", tmp_path / "run", "--trust") == 1


RUN: dict[str, Any] = {"certificate": "progressive", "budget": "40 epochs"}


def random_labels(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return rows(n)[0], torch.randint(2, (n,), generator=torch.Generator().manual_seed(5))


def test_copies_of_rows_prove_nothing() -> None:
    x, y = random_labels(25)
    result = pactrain.fit(build("mlp"), (x.repeat(20, 1), y.repeat(20)), **RUN)
    (s,) = result.certificate.statements
    assert s.value < 0.4
    assert s.label == "heuristic"
    assert "475 rows are copies of others" in str(result.certificate)


def test_a_start_that_knows_the_rows_proves_nothing() -> None:
    x, y = random_labels(120)
    known = build("mlp")
    optimizer = torch.optim.Adam(known.parameters(), 0.02)
    for _ in range(600):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(known(x), y).backward()
        optimizer.step()
    fresh = build("mlp")
    fresh.load_state_dict(known.state_dict())
    result = pactrain.fit(fresh, (x, y), **RUN)
    assert {s.label for s in result.certificate.statements} == {"heuristic"}
    assert "the initial network is better on the counted examples than chance allows" in str(result.certificate)


def test_the_explanation_is_short(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = explanation(run)
    assert 5 < len(lines) <= 10
    assert lines[0].startswith("This run: 300 rows")
    assert "on blocks before they were trained on" in lines[2]
    assert command("certify", run, "--explain") == 0
    assert "Advice:" in capsys.readouterr().out
