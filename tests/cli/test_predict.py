"""`pactrain predict`: what it writes, scores and refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pactrain.cli.predict import _write
from tests.cli.commands import flowers, run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predict")
    flowers(folder / "flowers.csv")
    run("train", "--data", "flowers.csv", "--target", "kind", "--budget", "100 epochs", "--out", "run", cwd=folder)
    x = np.random.default_rng(0).normal(size=120)
    pd.DataFrame({"name": [f"n{i}" for i in range(120)], "x": x, "y": 1000 + 50 * x}).to_csv(folder / "t.csv")
    run("train", "--data", "t.csv", "--target", "y", "--budget", "30 epochs", "--out", "line", cwd=folder)
    return folder


def test_every_class_its_probability_and_its_set(trained: Path) -> None:
    done = run("predict", "run", "flowers.csv", "--out", "answers.csv", "--coverage", "0.8", cwd=trained)
    answers = pd.read_csv(trained / "answers.csv", keep_default_na=False)
    chances = [f"probability of {name}" for name in ("iris", "rose", "tulip")]
    assert list(answers) == ["row", "prediction", "probability", *chances, "set"]
    assert answers["row"].tolist() == list(range(1, 91))
    np.testing.assert_allclose(answers[chances].sum(axis=1), 1)
    np.testing.assert_allclose(answers[chances].max(axis=1), answers["probability"])
    assert set(answers["set"].str.split(" | ", regex=False).explode()) <= {"iris", "rose", "tulip", ""}
    said = " ".join(done.stdout.split())
    assert "certified: 80 % coverage from 18 test rows" in said
    assert re.search(r"scored rows: 90 accuracy: \d+\.\d.% share in their sets: \d+\.\d.%", said)


def test_rows_by_name_and_intervals_in_the_targets_units(trained: Path) -> None:
    out = run("predict", "line", "t.csv", "--id", "name", "--coverage", "0.9", "--json", "-", cwd=trained).stdout
    answers = json.loads(out)
    assert answers["name"][:2] == ["n0", "n1"]
    low, high = np.array(answers["low"]), np.array(answers["high"])
    np.testing.assert_allclose((low + high) / 2, answers["prediction"])
    assert answers["scores"]["scored_rows"] == 120
    assert answers["scores"]["share_in_their_intervals"] > 0.6
    assert "no column 'nobody'" in run("predict", "line", "t.csv", "--id", "nobody", cwd=trained, code=2).stderr


def test_the_input_is_never_written_over(trained: Path) -> None:
    before = (trained / "flowers.csv").read_bytes()
    for option in ("--out", "--json"):
        done = run("predict", "run", "flowers.csv", option, trained / "flowers.csv", cwd=trained, code=2)
        assert "write the predictions to another file" in " ".join(done.stderr.split())
    assert (trained / "flowers.csv").read_bytes() == before


def test_cells_that_begin_like_formulas_are_texts(tmp_path: Path) -> None:
    cells = ["=1+1", "+cmd", "-x", "@sum", "-3.5", "plain"]
    _write(tmp_path / "p.csv", {"=name": cells})
    assert (tmp_path / "p.csv").read_text().splitlines() == [
        "'=name",
        "'=1+1",
        "'+cmd",
        "'-x",
        "'@sum",
        "-3.5",
        "plain",
    ]
