"""MAPIE's conformal methods around our estimators."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine

from pactrain.sklearn import PACBayesClassifier, PACBayesRegressor

pytest.importorskip("mapie", reason="pip install mapie")
from mapie.classification import SplitConformalClassifier
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor


def test_intervals_from_held_out_rows() -> None:
    x, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    train, aside, new = order[:140], order[140:290], order[290:]
    fitted = PACBayesRegressor(budget="10 epochs").fit(x[train], y[train])
    conformal = SplitConformalRegressor(fitted, confidence_level=0.9, prefit=True).conformalize(x[aside], y[aside])
    values, ends = conformal.predict_interval(x[new])
    np.testing.assert_allclose(values, fitted.predict(x[new]))
    share = ((ends[:, 0, 0] <= y[new]) & (y[new] <= ends[:, 1, 0])).mean()
    assert 0.8 < share < 0.98
    limit = np.sort(np.abs(y[aside] - fitted.predict(x[aside])))[135]  # the ⌈151 · 0.9⌉-th smallest, as ours is
    np.testing.assert_allclose(ends[:, 1, 0] - values, limit, rtol=1e-5)


def test_intervals_by_cross_validation() -> None:
    x, y = load_diabetes(return_X_y=True)
    conformal = CrossConformalRegressor(PACBayesRegressor(budget="3 epochs"), confidence_level=0.8, cv=3)
    _, ends = conformal.fit_conformalize(x[:200], y[:200]).predict_interval(x[200:])
    assert ((ends[:, 0, 0] <= y[200:]) & (y[200:] <= ends[:, 1, 0])).mean() > 0.7


def test_sets_of_classes() -> None:
    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    train, aside, new = order[:60], order[60:119], order[119:]
    fitted = PACBayesClassifier(budget="10 epochs").fit(x[train], y[train])
    conformal = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True).conformalize(x[aside], y[aside])
    _, sets = conformal.predict_set(x[new])
    share = sets[np.arange(len(new)), y[new], 0].mean()
    assert 0.75 < share <= 1
