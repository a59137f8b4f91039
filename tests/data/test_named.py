"""Tables by name."""

from pathlib import Path

import numpy as np
import pytest

from pactrain.data.load import load
from pactrain.data.splits import STRATIFIED
from pactrain.data.tables import Columns
from pactrain.data.task import STANDARDISED
from pactrain.runtime.errors import DataError


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
        load("digits", Columns(target="x"))


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
