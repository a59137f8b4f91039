"""Tables of users: what is read and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pactrain.data.files import read_frame
from pactrain.data.load import load
from pactrain.data.tables import Columns
from pactrain.data.task import LONGEST, RowLabels
from pactrain.runtime.errors import DataError
from tests.data.small_tables import csv, frame


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_the_three_formats_give_the_same_task(tmp_path: Path, ending: str) -> None:
    g = np.random.default_rng(1)
    x, y = g.normal(size=(40, 3)), np.arange(40) % 2
    path = tmp_path / f"t.{ending}"
    table = pd.DataFrame({f"X{i}": x[:, i] for i in range(3)} | {"y": y})
    if ending == "csv":
        table.to_csv(path, index=False)
    elif ending == "parquet":
        table.to_parquet(path)
    else:
        np.savez(path, X=x, y=y)
    task = load(str(path), Columns(target=None if ending == "npz" else "y"), test_fraction=0)
    np.testing.assert_allclose(task.x_train, (x - x.mean(0)) / x.std(0), atol=1e-5)
    np.testing.assert_array_equal(task.y_train, y)
    assert task.x_test is None


def test_kinds_of_targets(tmp_path: Path) -> None:
    table = frame()
    table["few"], table["many"] = np.arange(60) % 4, np.arange(60)
    path = csv(tmp_path, table)
    assert load(path, Columns(target="kind")).encoder.classes == ("a", "b")
    assert load(path, Columns(target="flag")).encoder.classes == ("False", "True")
    assert load(path, Columns(target="few")).encoder.classes == ("0", "1", "2", "3")
    assert load(path, Columns(target="many")).encoder.kind == "regression"
    assert load(path, Columns(target="few", kind="regression")).encoder.kind == "regression"
    with pytest.raises(DataError, match=r"'kind' is '[ab]' in row 1, which is not a number"):
        load(path, Columns(target="kind", kind="regression"))


def broken(
    tmp_path: Path, text: str, *, target: str | None = "y", time: str | None = None, test_fraction: float | None = None
) -> str:
    """The message of the error that a CSV text leads to."""
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load(str(path), Columns(target=target, time=time), test_fraction=test_fraction)
    return str(caught.value)


def test_every_mistake_has_its_message(tmp_path: Path) -> None:
    good = "".join(f"{i + 0.5},{i % 2}\n" for i in range(20))
    assert "no rows" in broken(tmp_path, "x,y\n")
    assert "no header" in broken(tmp_path, "")
    assert "'x' stands more than once" in broken(tmp_path, "x,x,y\n1,2,0\n")
    assert "no column 'z'; it has 'x', 'y'" in broken(tmp_path, "x,y\n" + good, target="z")
    assert "--target" in broken(tmp_path, "x,y\n" + good, target=None)
    assert "single class, '1'" in broken(tmp_path, "x,y\n" + "".join(f"{i},1\n" for i in range(9)))
    assert "missing in every row" in broken(tmp_path, "x,y\n1,\n2,\n")
    assert "infinite in row 5" in broken(tmp_path, "x,y\n1,0\n2,1\n3,0\n4,1\ninf,1\n5,0\n" + good)
    oops = broken(tmp_path, "x,y\n" + good + "oops,0\n")
    assert (
        "first 'oops' in row 21; correct these cells, leave them empty, or leave the column out with --drop x" in oops
    )
    assert "'x': the same in every row" in broken(tmp_path, "x,y\n" + "".join(f"7,{i % 2}\n" for i in range(20)))
    counted = broken(tmp_path, "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    assert "('x': row numbers); --keep NAME uses one all the same" in counted
    same = "x,y\n" + "".join(f"{i}.5,2.5\n" for i in range(20))
    assert "2.5 in every training row" in broken(tmp_path, same)
    assert "too few" in broken(tmp_path, "x,y\n1,0\n2,1\n")
    assert "test fraction is 1.5" in broken(tmp_path, "x,y\n" + good, test_fraction=1.5)
    assert "with --test-fraction 0 none are" in broken(tmp_path, "x,y\n" + good, test_fraction=0, time="x")
    with pytest.raises(DataError, match="no file"):
        read_frame(tmp_path / "none.csv")
    (tmp_path / "t.xlsx").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="not read"):
        read_frame(tmp_path / "t.xlsx")


def test_rows_of_another_length_than_the_header(tmp_path: Path) -> None:
    longer = "a,b,y\n" + "".join(f"{i},{i % 3},{i % 2},\n" for i in range(20))
    assert "row 1 has 4 fields and the header 3" in broken(tmp_path, longer)
    shorter = "a,b,y\n1,2,0\n3,1\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(20))
    assert "row 2 has 2 fields" in broken(tmp_path, shorter)


def test_a_numeric_target_with_a_mistake_is_no_classification(tmp_path: Path) -> None:
    text = "x,y\n" + "".join(f"{i},{i}.5\n" for i in range(30)) + '31,"12,3"\n'
    assert "the target 'y' holds numbers except in 1 rows, first '12,3' in row 31" in broken(tmp_path, text)


def test_broken_archives(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(DataError, match="cannot be read as NPZ"):
        read_frame(tmp_path / "t.npz")
    with pytest.raises(DataError, match="seed is -1"):
        load("iris", seed=-1)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_recognised(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "t.csv"
    table = frame().assign(remark="a,b;c|d", price=[f"{i},5" for i in range(60)])
    table.to_csv(path, index=False, sep=separator)
    pd.testing.assert_frame_equal(read_frame(path), table.assign(colour=table["colour"]), check_dtype=False)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("city,price\nŁódź,3\n".encode("latin2"))
    with pytest.raises(DataError, match=r"not written in UTF-8.*encoding='latin-1'"):
        read_frame(path)


def test_a_broken_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"x" * 500)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_frame(tmp_path / "t.parquet")


@pytest.mark.parametrize("own_test", [False, True])
def test_held_out_rows_are_known_by_their_numbers_in_their_file(tmp_path: Path, own_test: bool) -> None:
    table = pd.DataFrame({"x": np.arange(40.0) ** 2, "y": np.where(np.arange(40) == 3, np.nan, np.arange(40.0))})
    path, columns = csv(tmp_path, table), Columns(target="y")
    if own_test:
        (tmp_path / "later").mkdir()
        columns = Columns(target="y", test=csv(tmp_path / "later", table))
    task = load(path, columns)
    assert task.labels is not None
    assert task.y_test is not None
    targets = task.y_test * task.encoder.target_std + task.encoder.target_mean
    numbers = [int(task.labels(at)["row"]) for at in range(len(targets))]
    np.testing.assert_allclose(targets.ravel(), [number - 1 for number in numbers], atol=1e-3)


def test_long_texts_are_cut() -> None:
    labels = RowLabels("row", np.array([7]), {"body": np.array(["word " * 200])})
    assert labels(0)["row"] == "7"
    assert len(labels(0)["body"]) == LONGEST
    assert labels(0)["body"].endswith("…")
