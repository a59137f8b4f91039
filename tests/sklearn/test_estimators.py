"""The estimators: scikit-learn's own checks first, then what its users do with estimators."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import pactrain
from pactrain import PactrainError
from pactrain.certification.caveats import BALANCED
from pactrain.data.task import STANDARDISED, scaled_target
from pactrain.models.mlp import mlp
from pactrain.sklearn import PACBayesClassifier, PACBayesRegressor


@dataclass(frozen=True)
class Narrow:
    """A network that trains in a moment; not a function, whose address would stand in the names of the tests."""

    width: int = 16

    def __call__(self, inputs: int, outputs: int) -> nn.Module:
        return mlp(inputs, outputs, widths=[self.width])


def narrow(inputs: int, outputs: int) -> nn.Module:
    """The same as a function, as users write it."""
    return mlp(inputs, outputs, widths=[16])


EXPECTED_FAILURES: dict[str, str] = {}
"""Checks of scikit-learn that the estimators do not pass, each with its reason: there is none."""


@parametrize_with_checks(
    [PACBayesClassifier(Narrow(), budget="20 epochs"), PACBayesRegressor(Narrow(), budget="20 epochs")],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    if check.func.__name__ == "check_class_weight_classifiers":
        estimator.set_params(budget="100 epochs")  # weights of 1000 and .0001 take more than a glance to learn
    check(estimator)


def table(n: int = 150, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features of very different scales, and three classes named by text."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 3))
    y = np.array(["a", "b", "c"])[np.digitize(x[:, 0] + 0.1 * g.normal(size=n), [-0.4, 0.4])]
    return x * [1e-3, 1.0, 1e4] + [5.0, 0.0, 1e6], y


def classifier(**settings: Any) -> PACBayesClassifier:
    return PACBayesClassifier(narrow, **{"budget": "40 epochs"} | settings)


def regressor(**settings: Any) -> PACBayesRegressor:
    return PACBayesRegressor(narrow, **{"budget": "40 epochs"} | settings)


def test_raw_features_need_no_scaling_and_the_certificate_says_what_was_done() -> None:
    x, y = table()
    model = classifier().fit(x, y)
    assert model.score(*table(seed=1)) > 0.85
    assert list(model.classes_) == ["a", "b", "c"]
    assert STANDARDISED in model.certificate_.caveats
    assert model.certificate_.recheck()
    assert len(model.history_) == 40
    scaled = StandardScaler().fit_transform(x)
    own = classifier(standardize=False).fit(scaled, y)
    assert not own.certificate_.caveats
    np.testing.assert_allclose(own.predict_proba(scaled), model.predict_proba(x), atol=1e-4)


def test_by_default_the_network_is_an_mlp_for_the_data() -> None:
    x, y = table()
    model = PACBayesClassifier(budget="3 epochs").fit(x, y)
    shapes = [tuple(p.shape) for p in model.model_.parameters()]
    assert (shapes[0], shapes[-1]) == ((256, 3), (3,))


def test_sample_weights_are_refused_with_the_reason() -> None:
    x, y = table()
    for model in (classifier(), regressor()):
        with pytest.raises(ValueError, match="counts n independent examples"):
            model.fit(x, y, sample_weight=np.ones(len(x)))
        with pytest.raises(TypeError, match="unexpected"):
            model.fit(x, y, epochs=3)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_column_names(frame: Any) -> None:
    x, y = table()
    named = frame({"height": x[:, 0], "width": x[:, 1], "weight": x[:, 2]})
    series = pd.Series(y) if frame is pd.DataFrame else pl.Series(y)
    model = classifier(budget="3 epochs").fit(named, series)
    assert list(model.feature_names_in_) == ["height", "width", "weight"]
    np.testing.assert_array_equal(model.predict(named), classifier(budget="3 epochs").fit(x, y).predict(x))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(named[["weight", "width", "height"]])


def test_pipelines_searches_and_column_transformers() -> None:
    x, y = table()
    frame = pd.DataFrame({"number": x[:, 0], "colour": np.where(x[:, 1] > 0, "red", "blue")})
    columns = ColumnTransformer([("text", OneHotEncoder(), ["colour"])], remainder="passthrough")
    search = GridSearchCV(
        make_pipeline(columns, classifier()),
        {"pacbayesclassifier__model": [narrow, Narrow(2)]},
        cv=2,
        error_score="raise",
    )
    assert search.fit(frame, y).best_score_ > 0.8
    assert cross_val_score(classifier(), x, y, cv=2, scoring="roc_auc_ovr").mean() > 0.9
    settings = classifier(delta=0.1, random_state=7)
    assert clone(settings).get_params() == settings.get_params()


@pytest.mark.parametrize("make", [classifier, regressor])
def test_saving_and_loading(make: Any, tmp_path: Path) -> None:
    x, y = table()
    model = make(budget="5 epochs").fit(x, y if make is classifier else x[:, 0])
    joblib.dump(model, tmp_path / "model.joblib")
    skops.io.dump(model, tmp_path / "model.skops")
    unknown = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert set(unknown) == {
        f"pactrain.sklearn.estimators.{type(model).__name__}",
        "tests.sklearn.test_estimators.narrow",
    }
    for again in (joblib.load(tmp_path / "model.joblib"), skops.io.load(tmp_path / "model.skops", trusted=unknown)):
        np.testing.assert_array_equal(again.predict(x), model.predict(x))
        np.testing.assert_array_equal(again.predict(x, draws=5), model.predict(x, draws=5))
        assert again.certificate_ == model.certificate_
        assert again.history_ == model.history_
        assert again.get_params() == model.get_params()


def test_a_module_is_copied_and_can_be_saved_by_joblib(tmp_path: Path) -> None:
    x, y = table()
    network = narrow(3, 3)
    before = [p.clone() for p in network.parameters()]
    model = PACBayesClassifier(network, budget="5 epochs").fit(x, y)
    assert model.model_ is not network
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict_proba(x, draws=5), model.predict_proba(x, draws=5))
    assert again.posterior_.model is again.model_
    pactrain.fit(network, (np.zeros((4, 3)), np.arange(4) % 3), budget="1 epoch")
    caveats = PACBayesClassifier(network, budget="1 epoch").fit(x, y).certificate_.caveats
    assert any("trained the network before" in c.reason for c in caveats)


def test_mistakes_with_models_and_losses_are_explained() -> None:
    with pytest.raises(ValueError, match=r"single class, 0\.0: there is nothing to learn"):
        PACBayesClassifier().fit(np.ones((9, 2)), np.zeros(9))
    x, y = table()
    mistakes: list[tuple[Any, str]] = [
        (classifier().set_params(model="mlp"), "pass None for an MLP"),
        (classifier().set_params(model=lambda inputs, outputs: [inputs]), "returned list"),
        (PACBayesClassifier(nn.Linear(3, 2), budget="1 epoch"), "a network with 2 scores"),
        (classifier(loss="mse"), "is for numbers"),
        (classifier(loss="zero_one"), "not known"),
        (classifier(budget="soon"), "not understood"),
    ]
    for model, words in mistakes:
        with pytest.raises(PactrainError, match=words):
            model.fit(x, y)
    with pytest.raises(PactrainError, match="is for classes"):
        regressor(loss="hinge").fit(x, x[:, 0])
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        classifier().fit(x, np.arange(300).reshape(150, 2) % 3)
    with pytest.warns(ConvergenceWarning, match="largest class"):
        classifier(budget="1 epoch").fit(np.zeros((30, 2)), np.arange(30) % 2)


def test_multilabel_targets() -> None:
    x, _ = table(300)
    labels = np.stack([x[:, 0] > 5, x[:, 1] > 0, (x[:, 1] > 0) & (x[:, 0] > 5), x[:, 2] > 2e6], axis=1).astype(int)
    model = classifier().fit(x, labels)
    assert model.predict(x).shape == model.predict_proba(x).shape == labels.shape
    assert model.score(x, labels) > 0.8
    assert model.certificate_.measured["loss"] > 0
    np.testing.assert_array_equal(model.predict(x), (model.predict_proba(x) > 0.5).astype(int))
    assert (model.predict(x, draws=20) == labels).mean() > 0.9
    assert model.predict_proba(x, draws=20).shape == labels.shape


def test_rare_classes_are_kept_and_can_be_given_weight() -> None:
    g = np.random.default_rng(0)
    y = (np.arange(600) % 20 == 0).astype(int)
    x = g.normal(size=(600, 4)) + 1.2 * y[:, None]
    plain, balanced = classifier().fit(x, y), classifier(class_weight="balanced").fit(x, y)
    recalls = [recall_score(y, m.predict(x)) for m in (plain, balanced)]
    assert recalls[1] > recalls[0] + 0.1
    assert plain.predict_proba(x)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)  # probabilities know the base rate
    assert min(roc_auc_score(y, m.predict_proba(x)[:, 1]) for m in (plain, balanced)) > 0.9
    assert BALANCED in balanced.certificate_.caveats
    lonely = y.copy()
    lonely[3] = 2
    assert classifier(budget="20 epochs").fit(x, lonely).predict_proba(x).shape == (600, 3)
    with pytest.raises(ValueError, match="class_weight"):
        classifier(class_weight="balanced").fit(x, np.stack([y, y], axis=1))


def test_probabilities_are_offered_only_where_the_loss_has_some() -> None:
    x, y = table()
    hinge = classifier(loss="hinge").fit(x, y)
    assert hinge.score(x, y) > 0.85
    assert not hasattr(hinge, "predict_proba")
    assert hasattr(classifier(), "predict_proba")


def test_the_randomised_predictor() -> None:
    x, y = table()
    model = classifier().fit(x, y)
    chances = model.predict_proba(x, draws=50)
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_array_equal(chances, model.predict_proba(x, draws=50))
    assert 0 < np.abs(chances - model.predict_proba(x)).max() < 0.3
    assert (model.predict(x, draws=50) == model.predict(x)).mean() > 0.9
    assert not np.array_equal(classifier(random_state=1).fit(x, y).predict_proba(x), model.predict_proba(x))
    seeds = {
        classifier(budget="10 epochs", random_state=state).fit(x, y).seed_
        for state in (None, np.random.RandomState(3), 3)
    }
    assert len(seeds) == 3


def test_numbers_are_predicted_in_their_own_units() -> None:
    x, _ = table(200)
    y = 1e6 + 5e4 * (x[:, 0] - 5) * 1e3
    model = regressor(budget="100 epochs").fit(x, y)
    assert model.score(x, y) > 0.95
    mean, std = model.predict(x, return_std=True)
    assert np.abs(mean - model.predict(x)).mean() < 0.2 * y.std()
    assert 0 < std.min() < std.max() < y.std()
    np.testing.assert_array_equal(model.predict(x, draws=100), mean)
    assert scaled_target(float(y.std()), 0.0) in model.certificate_.caveats
    both = np.stack([y, -x[:, 1]], axis=1)
    wide = regressor(budget="100 epochs").fit(x, both)
    assert wide.predict(x).shape == both.shape
    assert wide.score(x, both) > 0.9
    assert regressor(budget="2 epochs").fit(x, np.full(200, 3.0)).predict(x).mean() == pytest.approx(3, abs=2)


def test_quantiles_enclose_what_they_should() -> None:
    g = np.random.default_rng(0)
    x = g.uniform(-1, 1, size=(300, 1))
    y = 10 * x[:, 0] + g.normal(size=300) * (1 + x[:, 0] ** 2)
    low, high = (regressor(loss=f"quantile:{level}").fit(x, y).predict(x) for level in (0.1, 0.9))
    assert 0.7 < ((low < y) & (y < high)).mean() < 0.9
