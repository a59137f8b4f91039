"""Columns encoded by what the training rows have."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pactrain.data.encoder import Encoder, LeftOut
from pactrain.data.encoder_fit import fit_encoder
from pactrain.data.files import read_frame
from pactrain.data.load import load
from pactrain.data.tables import Columns
from pactrain.runtime.errors import DataError
from tests.data.small_tables import csv, frame


def test_columns_are_encoded_as_documented() -> None:
    table = frame()
    encoder = fit_encoder(table.drop(columns=["kind", "price"]), table["kind"], np.arange(60), "classification")
    assert [c.name for c in encoder.numeric] == ["size", "flag"]
    assert [c.name for c in encoder.categorical] == ["colour"]
    assert encoder.categorical[0].categories == ("(missing)", "blue", "green", "red")
    assert encoder.left_out == (LeftOut("same", "the same in every row"),)
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
    task = load(csv(tmp_path, table), Columns(target="price"), seed=3)
    assert task.encoder.kind == "regression"
    assert abs(task.y_train.mean()) < 1e-5
    assert task.x_train[:, 0].std() == pytest.approx(1, abs=1e-4)
    assert task.x_test is not None
    assert abs(task.x_test[:, 0].mean()) > 1e-3
    assert len(task.x_test) == 12


def test_missing_columns_and_odd_values_in_new_rows() -> None:
    table = frame()
    encoder = fit_encoder(table.drop(columns=["kind"]), table["kind"], np.arange(60), "classification")
    with pytest.raises(DataError, match="lacks the column 'colour'"):
        encoder.features(table.drop(columns=["colour"]))
    with pytest.raises(DataError, match=r"'size' is 'big' in row 2; it held numbers"):
        encoder.features(table.head(3).astype({"size": object}).assign(size=[1, "big", 2]))
    with pytest.raises(DataError, match="class 'c', not seen"):
        encoder.targets(pd.Series(["a", "c"], name="kind"))


def test_categories_that_look_like_numbers_are_read_as_in_training(tmp_path: Path) -> None:
    table = pd.DataFrame({"code": ["01", "02", "A3"] * 20, "y": ["p", "q", "q"] * 20})
    path = csv(tmp_path, table)
    encoder = load(path, Columns(target="y")).encoder
    new = tmp_path / "new.csv"
    new.write_text("code\n01\n02\n\nZ9\n")
    frame = read_frame(new, text=("code",))
    np.testing.assert_array_equal(encoder.features(frame), [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert encoder.unknown(frame) == ["column 'code': 1 rows hold a category not seen in training, such as 'Z9'"]


def test_columns_of_fractions_take_the_short_way_to_the_same_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame(
        {"plain": [0.5, 1.25, np.nan, 4.0] * 10, "customer_id": np.arange(40) + 0.5, "whole": np.arange(40.0) * 2}
    )
    target = pd.Series(["a", "b"] * 20, name="y")
    short = fit_encoder(table, target, np.arange(30), "classification")
    monkeypatch.setattr("pactrain.data.encoder_fit._fractions", lambda seen: None)
    assert fit_encoder(table, target, np.arange(30), "classification") == short
