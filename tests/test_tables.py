"""Tables of users: what is read, what is refused, and that new rows are treated as the training rows were."""

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pactrain.data.dates import days, is_dates
from pactrain.data.encoder import Encoder, fit_encoder
from pactrain.data.load import load
from pactrain.data.tables import read_frame
from pactrain.data.task import STANDARDISED, STRATIFIED, split_rows
from pactrain.runtime.errors import DataError


def frame(n: int = 60) -> pd.DataFrame:
    """Numbers with gaps, categories with gaps, a constant column, a flag."""
    g = np.random.default_rng(0)
    out = pd.DataFrame(
        {
            "size": g.normal(5, 2, n),
            "colour": g.choice(["red", "green", "blue"], n),
            "same": 1.0,
            "flag": g.random(n) < 0.5,
            "price": g.normal(100, 10, n),
            "kind": g.choice(["a", "b"], n),
        }
    )
    out.loc[3, "size"] = np.nan
    out.loc[4, "colour"] = None
    return out


def csv(tmp_path: Path, table: pd.DataFrame, name: str = "t.csv") -> str:
    """The path of a table written as CSV."""
    path = tmp_path / name
    table.to_csv(path, index=False)
    return str(path)


def test_columns_are_encoded_as_documented() -> None:
    table = frame()
    encoder = fit_encoder(table.drop(columns=["kind", "price"]), table["kind"], np.arange(60), "classification")
    assert [c.name for c in encoder.numeric] == ["size", "flag"]
    assert [c.name for c in encoder.categorical] == ["colour"]
    assert encoder.categorical[0].categories == ("(missing)", "blue", "green", "red")
    assert encoder.constant == ("same",)
    x = encoder.features(table)
    assert x.shape == (60, 6)
    filled = table["size"].fillna(table["size"].median())
    np.testing.assert_allclose(x[:, 0], (filled - filled.mean()) / filled.std(ddof=0), atol=1e-5)
    np.testing.assert_array_equal(x[:, 2:].sum(axis=1), 1)
    assert x[4, 2] == 1
    new = table.head(2).assign(colour=pd.Series(["purple", None], dtype=object))
    np.testing.assert_array_equal(encoder.features(new)[:, 2:], [[0, 0, 0, 0], [1, 0, 0, 0]])
    assert Encoder.from_dict(encoder.to_dict()) == encoder


def test_the_encoding_is_fitted_on_training_rows_only(tmp_path: Path) -> None:
    table = frame().drop(columns=["kind"])
    task = load(csv(tmp_path, table), target="price", seed=3)
    assert task.encoder.kind == "regression"
    assert abs(task.y_train.mean()) < 1e-5
    assert task.x_train[:, 0].std() == pytest.approx(1, abs=1e-4)
    assert task.x_test is not None
    assert abs(task.x_test[:, 0].mean()) > 1e-3
    assert len(task.x_test) == 12


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
    task = load(str(path), target=None if ending == "npz" else "y", test_fraction=0)
    np.testing.assert_allclose(task.x_train, (x - x.mean(0)) / x.std(0), atol=1e-5)
    np.testing.assert_array_equal(task.y_train, y)
    assert task.x_test is None


def test_kinds_of_targets(tmp_path: Path) -> None:
    table = frame()
    table["few"], table["many"] = np.arange(60) % 4, np.arange(60)
    path = csv(tmp_path, table)
    assert load(path, target="kind").encoder.classes == ("a", "b")
    assert load(path, target="flag").encoder.classes == ("False", "True")
    assert load(path, target="few").encoder.classes == ("0", "1", "2", "3")
    assert load(path, target="many").encoder.kind == "regression"
    assert load(path, target="few", kind="regression").encoder.kind == "regression"
    with pytest.raises(DataError, match=r"'kind' is '[ab]' in row 1, which is not a number"):
        load(path, target="kind", kind="regression")


def broken(tmp_path: Path, text: str, **options: object) -> str:
    """The message of the error that a CSV text leads to."""
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load(str(path), **({"target": "y"} | options))  # type: ignore[arg-type]
    return str(caught.value)


def test_every_mistake_has_its_message(tmp_path: Path) -> None:
    good = "".join(f"{i},{i % 2}\n" for i in range(20))
    assert "no rows" in broken(tmp_path, "x,y\n")
    assert "no header" in broken(tmp_path, "")
    assert "'x' stands more than once" in broken(tmp_path, "x,x,y\n1,2,0\n")
    assert "no column 'z'; it has 'x', 'y'" in broken(tmp_path, "x,y\n" + good, target="z")
    assert "--target" in broken(tmp_path, "x,y\n" + good, target=None)
    assert "single class, '1'" in broken(tmp_path, "x,y\n" + "".join(f"{i},1\n" for i in range(9)))
    assert "missing in 1 of 21 rows, first in row 21" in broken(tmp_path, "x,y\n" + good + "3,\n")
    assert "infinite in row 5" in broken(tmp_path, "x,y\n1,0\n2,1\n3,0\n4,1\ninf,1\n5,0\n" + good)
    assert "first 'oops' in row 21" in broken(tmp_path, "x,y\n" + good + "oops,0\n")
    assert "all are constant" in broken(tmp_path, "x,y\n" + "".join(f"7,{i % 2}\n" for i in range(20)))
    names = "x,y\n" + "".join(f"name {i},{i % 2}\n" for i in range(200))
    assert "--drop x" in broken(tmp_path, names)
    two = "my name,when,y\n" + "".join(
        f"name {i},{i % 28 + 1}.{i % 12 + 1}.{1990 + i // 28},{i % 2}\n" for i in range(200)
    )
    assert "they look like names or identifiers; leave out such columns with --drop 'my name' when" in broken(
        tmp_path, two
    )
    assert "write dates as 2024-12-31" in broken(tmp_path, two)
    texts = "x,y\n" + "".join(f"what was said in case {i},{i % 2}\n" for i in range(30))
    assert "or read free text with --text x" in broken(tmp_path, texts)  # few rows, and no categories all the same
    same = "x,y\n" + "".join(f"{i},2.5\n" for i in range(20))
    assert "2.5 in every training row" in broken(tmp_path, same)
    assert "too few" in broken(tmp_path, "x,y\n1,0\n2,1\n")
    assert "test fraction is 1.5" in broken(tmp_path, "x,y\n" + good, test_fraction=1.5)
    with pytest.raises(DataError, match="no file"):
        read_frame(tmp_path / "none.csv")
    (tmp_path / "t.xlsx").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="not read"):
        read_frame(tmp_path / "t.xlsx")


def test_dates_become_days(tmp_path: Path) -> None:
    path = tmp_path / "dates.csv"
    path.write_text("day,y\n" + "".join(f"1970-01-{i % 30 + 1:02},{i % 2}\n" for i in range(60)) + ",0\n")
    task = load(str(path), target="y", test_fraction=0)
    (column,) = task.encoder.numeric
    assert column.dates
    assert column.median == 14.5
    again = Encoder.from_dict(json.loads(json.dumps(task.encoder.to_dict())))
    new = pd.DataFrame({"day": ["1970-01-02", "1970-01-02T12:00", None]})
    expected = (np.array([[1.0], [1.5], [14.5]]) - column.mean) / column.std
    np.testing.assert_allclose(again.features(new), expected, rtol=1e-6)
    np.testing.assert_allclose(
        again.features(new.assign(day=pd.to_datetime(["1970-01-02"] * 3))), expected[[0] * 3], rtol=1e-6
    )
    with pytest.raises(DataError, match=r"'day' is 'soon' in row 2; it held dates"):
        again.features(pd.DataFrame({"day": ["1970-01-02", "soon"]}))
    with pytest.raises(DataError, match=r"'day' is '1970-02-31' in row 1"):
        again.features(pd.DataFrame({"day": ["1970-02-31"]}))


def test_missing_columns_and_odd_values_in_new_rows() -> None:
    table = frame()
    encoder = fit_encoder(table.drop(columns=["kind"]), table["kind"], np.arange(60), "classification")
    with pytest.raises(DataError, match="lacks the column 'colour'"):
        encoder.features(table.drop(columns=["colour"]))
    with pytest.raises(DataError, match=r"'size' is 'big' in row 2; it held numbers"):
        encoder.features(table.head(3).astype({"size": object}).assign(size=[1, "big", 2]))
    with pytest.raises(DataError, match="class 'c', not seen"):
        encoder.targets(pd.Series(["a", "c"], name="kind"))


def test_splits_are_stratified_where_possible_and_follow_the_seed() -> None:
    y = np.array([0] * 90 + [1] * 10)
    train, test = split_rows(100, y, 0.5, 0)
    assert y[train].sum() == 5
    assert sorted([*train, *test]) == list(range(100))
    again, _ = split_rows(100, y, 0.5, 0)
    np.testing.assert_array_equal(train, again)
    assert (split_rows(100, y, 0.5, 1)[0] != train).any()
    rare = np.array([0] * 9 + [1])
    assert len(split_rows(10, rare, 0.5, 0)[1]) == 5


def test_named_sets() -> None:
    digits = load("digits", seed=2)
    assert (len(digits.x_train), digits.inputs, digits.outputs, digits.caveats) == (898, 64, 10, (STRATIFIED,))
    assert digits.x_train.max() == 1.0
    diabetes = load("diabetes")
    assert diabetes.encoder.target_std == pytest.approx(77, rel=0.1)
    assert diabetes.caveats[0] == STANDARDISED
    with pytest.raises(DataError, match="no data set 'digit'"):
        load("digit")
    with pytest.raises(DataError, match="go with a file"):
        load("digits", target="x")


def test_published_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(0)
    x, y, tests = g.normal(size=(30, 4)), g.normal(size=(30, 1)), np.stack([np.arange(3), np.arange(3, 6)])
    np.savez(tmp_path / "uci_regression.npz", yacht_X=x, yacht_y=y, yacht_test_idx=tests)
    monkeypatch.setenv("PACTRAIN_DATA", str(tmp_path))
    task = load("uci:yacht", split=1)
    assert task.y_test is not None
    np.testing.assert_allclose(task.y_test * task.encoder.target_std + task.encoder.target_mean, y[3:6, 0], rtol=1e-5)
    with pytest.raises(DataError, match="no split 2"):
        load("uci:yacht", split=2)
    with pytest.raises(DataError, match="no UCI set"):
        load("uci:boat")
    (tmp_path / "uci_regression.npz").unlink()
    with pytest.raises(DataError, match=r"uci_regression.npz was not found \(looked in"):
        load("uci:yacht")


def test_rows_of_another_length_than_the_header(tmp_path: Path) -> None:
    longer = "a,b,y\n" + "".join(f"{i},{i % 3},{i % 2},\n" for i in range(20))
    assert "row 1 has 4 fields and the header 3" in broken(tmp_path, longer)
    shorter = "a,b,y\n1,2,0\n3,1\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(20))
    assert "row 2 has 2 fields" in broken(tmp_path, shorter)


def test_a_numeric_target_with_a_mistake_is_no_classification(tmp_path: Path) -> None:
    text = "x,y\n" + "".join(f"{i},{i}.5\n" for i in range(30)) + '31,"12,3"\n'
    assert "the target 'y' holds numbers except in 1 rows, first '12,3' in row 31" in broken(tmp_path, text)


def test_categories_that_look_like_numbers_are_read_as_in_training(tmp_path: Path) -> None:
    table = pd.DataFrame({"code": ["01", "02", "A3"] * 20, "y": ["p", "q", "q"] * 20})
    path = csv(tmp_path, table)
    encoder = load(path, target="y").encoder
    new = tmp_path / "new.csv"
    new.write_text("code\n01\n02\n\nZ9\n")
    frame = read_frame(new, text=("code",))
    np.testing.assert_array_equal(encoder.features(frame), [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert encoder.unknown(frame) == ["column 'code': 1 rows hold a category not seen in training, such as 'Z9'"]


def test_broken_archives(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(DataError, match="cannot be read as NPZ"):
        read_frame(tmp_path / "t.npz")
    with pytest.raises(DataError, match="seed is -1"):
        load("iris", seed=-1)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_recognised(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "t.csv"
    frame().to_csv(path, index=False, sep=separator)
    with pytest.raises(DataError, match=r"seems to be separated by .*, not by commas; write it again"):
        read_frame(path)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("city,price\nŁódź,3\n".encode("latin2"))
    with pytest.raises(DataError, match=r"not written in UTF-8.*encoding='latin-1'"):
        read_frame(path)


def test_dates_far_away_and_as_objects() -> None:
    written = pd.Series(["2024-12-31", "9999-12-31", None, "1600-01-01"], index=list("abcd"), name="day")
    assert is_dates(written)
    np.testing.assert_array_equal(days(written), [20088, 2932896, np.nan, -135140])
    objects = pd.Series([datetime.date(1970, 1, 3), None])
    assert is_dates(objects)
    np.testing.assert_array_equal(days(objects), [2, np.nan])
