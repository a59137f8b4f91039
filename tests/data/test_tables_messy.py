"""Tables with the mess of real files are trained on without any option but the target."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pactrain.data.column_report import column_records, columns_in_short
from pactrain.data.encoder import Encoder
from pactrain.data.encoder_fit import MOST_CATEGORIES
from pactrain.data.files import read_frame
from pactrain.data.load import load
from pactrain.data.splits import GROUPED, ORDERED, OWN_TEST
from pactrain.data.tables import Columns
from pactrain.runtime.errors import DataError
from tests.data.messy import ROWS, SIGNAL, Messy, files, table

FILES = {messy.name: messy for messy in files()}


def shell(tmp_path: Path, *words: str) -> str:
    """What `pactrain train` prints, after checking that it went well."""
    command = [sys.executable, "-m", "pactrain", "train", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("messy", FILES.values(), ids=str)
def test_what_becomes_of_the_columns(tmp_path: Path, messy: Messy) -> None:
    path = tmp_path / messy.name
    messy.write(path)
    task = load(str(path), Columns(target=messy.target))
    assert task.x_test is not None
    assert np.isfinite(task.x_train).all()
    again = Encoder.from_dict(json.loads(json.dumps(task.encoder.to_dict())))
    np.testing.assert_array_equal(again.features(read_frame(path, again.read_as_text))[:1].shape, (1, task.inputs))
    told = {record["column"]: record for record in column_records(task.encoder)}
    assert sum(record["features"] for record in told.values()) == task.inputs
    if messy.became == "left out":
        assert told["mess"]["became"] == "left out"
        assert f"mess ({told['mess']['why']})" in columns_in_short(task.encoder)
    elif messy.became is not None:
        kind, detail = messy.became
        assert told["mess"]["became"] == kind
        assert detail in (None, told["mess"].get("parts"), told["mess"].get("different"))


def test_there_are_enough_files() -> None:
    assert len(FILES) >= 25


@pytest.mark.parametrize("name", ["german_dates.csv", "semicolons.csv", "keras.npz", "decimals.parquet"])
def test_messy_files_are_trained_on_from_the_shell(tmp_path: Path, name: str) -> None:
    train_from_the_shell(tmp_path, FILES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_messy_file_is_trained_on_from_the_shell(tmp_path: Path, name: str) -> None:
    train_from_the_shell(tmp_path, FILES[name])


def train_from_the_shell(tmp_path: Path, messy: Messy) -> None:
    """Train with no option but the target, and a short budget; the columns are printed and kept."""
    messy.write(tmp_path / messy.name)
    target = ["--target", messy.target] if messy.target else []
    printed = shell(tmp_path, "--data", messy.name, *target, "--budget", "2 epochs", "--out", "run")
    assert "Columns: " in printed
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["columns"] == column_records(Encoder.from_dict(config["preprocess"]))


def test_dates_written_in_two_orders_are_told_apart_by_the_column(tmp_path: Path) -> None:
    for name, month_first in (("british_dates.csv", False), ("american_times.csv", True)):
        FILES[name].write(tmp_path / name)
        encoder = load(str(tmp_path / name), Columns(target="y")).encoder
        form = next(c.reading.form for c in encoder.numeric if c.name == "mess")
        assert form.startswith("%m") == month_first


def test_missing_targets_are_named_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    gaps = [None if i % 8 == 0 else i % 2 for i in range(ROWS)]
    table(SIGNAL**2, gaps).to_csv(path, index=False)
    task = load(str(path), Columns(target="y"))
    assert task.notes == ("The target 'y' is missing in 10 of 80 rows, first in row 1: they are not used.",)
    assert task.encoder.classes == ("0", "1")
    assert len(task.x_train) + len(task.x_test) == 70  # type: ignore[arg-type]


def test_many_categories_have_features_for_the_frequent_ones(tmp_path: Path) -> None:
    g = np.random.default_rng(0)
    codes = [f"c{int(1 + 760 * v**3)}" for v in g.random(4000)]
    path = tmp_path / "t.csv"
    pd.DataFrame({"code": codes, "y": g.choice(["a", "b"], 4000)}).to_csv(path, index=False)
    encoder = load(str(path), Columns(target="y"), test_fraction=0).encoder
    (column,) = encoder.categorical
    frequent = pd.Series(codes).value_counts()
    assert encoder.inputs == MOST_CATEGORIES
    assert column.different == len(frequent)
    assert set(frequent.index[:40]) <= set(column.categories)
    assert f"and {column.different - MOST_CATEGORIES} rare ones without a feature" in columns_in_short(encoder)
    assert encoder.unknown(pd.DataFrame({"code": ["new"]})) == []


def test_identifiers_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    g = np.random.default_rng(0)
    ids = table(g.permutation(10**6)[:ROWS]).rename(columns={"mess": "customer_id"})
    ids.assign(store_id=g.integers(100, 110, ROWS), paid=g.permutation(10**5)[:ROWS]).to_csv(path, index=False)
    told = {
        record["column"]: record["became"] for record in column_records(load(str(path), Columns(target="y")).encoder)
    }
    assert told["customer_id"] == "left out"
    assert told["store_id"] == "categories"
    assert told["paid"] == "number"  # different in every row as well, and a quantity
    kept = column_records(load(str(path), Columns(target="y", keep=("customer_id",))).encoder)
    assert next(record["became"] for record in kept if record["column"] == "customer_id") == "number"


def test_splits_by_file_group_and_time(tmp_path: Path) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "test.csv"
    day = pd.date_range("2023-01-01", periods=ROWS)[::-1]
    frame = table(SIGNAL**2).assign(patient=[f"p{i // 4}" for i in range(ROWS)], day=day)
    frame.to_csv(path, index=False)
    frame.head(10).to_csv(other, index=False)

    given = load(str(path), Columns(target="y", test=other))
    assert (len(given.x_train), len(given.x_test)) == (ROWS, 10)  # type: ignore[arg-type]
    assert OWN_TEST in given.caveats
    np.testing.assert_allclose(given.x_test, given.x_train[:10])  # type: ignore[arg-type]

    later = load(str(path), Columns(target="y", time="day"))
    assert ORDERED in later.caveats
    assert len(later.x_test) == 16  # type: ignore[arg-type]
    signal = next(i for i, c in enumerate(later.encoder.numeric) if c.name == "signal")
    fitted = later.encoder.numeric[signal]
    np.testing.assert_allclose(later.x_test[:, signal] * fitted.std + fitted.mean, SIGNAL[:16] + 0.3, rtol=1e-5)  # type: ignore[index]
    assert [c.part for c in later.encoder.numeric if c.name == "day"] == ["month", "weekday"]

    grouped = load(str(path), Columns(target="y", group="patient"))
    assert GROUPED in grouped.caveats
    assert len(grouped.x_test) == 16  # type: ignore[arg-type]
    held_out = set(np.round(grouped.x_test[:, signal] * fitted.std, 4))  # type: ignore[index]
    assert len(held_out) == 16
    rows = [i for i in range(ROWS) if _is_in(grouped, i, signal)]
    assert {i // 4 for i in rows} & {i // 4 for i in range(ROWS) if i not in rows} == set()
    with pytest.raises(DataError, match="no column 'ward'"):
        load(str(path), Columns(target="y", group="ward"))


def _is_in(task: object, row: int, signal: int) -> bool:
    """True if a row of the table is among the test rows."""
    fitted = task.encoder.numeric[signal]  # type: ignore[attr-defined]
    values = task.x_test[:, signal] * fitted.std + fitted.mean  # type: ignore[attr-defined]
    return bool(np.isclose(values, SIGNAL[row] + 0.3, rtol=1e-5, atol=1e-6).any())


def test_a_certificate_of_groups_claims_nothing(tmp_path: Path) -> None:
    table(SIGNAL**2).assign(patient=[f"p{i // 4}" for i in range(ROWS)]).to_csv(tmp_path / "t.csv", index=False)
    words = ("--data", "t.csv", "--target", "y", "--group", "patient", "--budget", "2 epochs", "--out", "run")
    assert "rows of one group depend on each other" in shell(tmp_path, *words)
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert {statement["label"] for statement in certificate["statements"]} == {"heuristic"}


@pytest.mark.parametrize("name", ["target_of_ones.csv", "keras_one_hot.npz", "keras_column.npz", "train_only.npz"])
def test_targets_of_classes_in_other_spellings(tmp_path: Path, name: str) -> None:
    FILES[name].write(tmp_path / name)
    task = load(str(tmp_path / name), Columns(target=FILES[name].target))
    classes = ("0", "1") if name == "target_of_ones.csv" else ("0", "1", "2")
    assert task.encoder.classes == classes
    assert set(task.y_train) == set(range(len(classes)))


def test_losses_in_brackets_are_below_zero_and_dates_in_several_ways_are_named(tmp_path: Path) -> None:
    for name in ("losses.csv", "three_ways.csv"):
        FILES[name].write(tmp_path / name)
    task = load(str(tmp_path / "losses.csv"), Columns(target="y"))
    (mess,) = (part for part in task.encoder.numeric if part.name == "mess")
    assert mess.mean == pytest.approx(SIGNAL.mean(), abs=0.3)
    told = columns_in_short(load(str(tmp_path / "three_ways.csv"), Columns(target="y")).encoder)
    assert "mess (dates written in several ways; write them in one)" in told
