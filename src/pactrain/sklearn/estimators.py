"""scikit-learn estimators: `PACBayesClassifier` and `PACBayesRegressor`.

Features are standardised with the training rows unless `standardize=False`, targets of regression always; predictions are
in the target's own units.  Standardising uses the rows that the bound counts, so the certificate's numbers are then called
estimated, not certified.  With `prior_data` the means and scales come from the prior's rows alone (with a progressive certificate, from the first half) and the numbers stay certified;
so they do with `standardize=False` and features scaled by constants known beforehand.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor, nn

from pactrain.certification.caveats import BALANCED
from pactrain.certification.statement import Caveat
from pactrain.data.cell_values import check_size
from pactrain.data.task import scaled_target
from pactrain.distributions.prior import Prior
from pactrain.problem.as_loss import as_loss
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.problem.named_losses import LOSSES, weighted
from pactrain.rules.rules import Rules
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.sklearn.base import Array, Factory, PACBayesEstimator, refuse

SPREAD_DRAWS = 100


class PACBayesClassifier(ClassifierMixin, PACBayesEstimator):  # type: ignore[misc]
    """A neural network classifier trained by minimising a PAC-Bayes bound; nothing has to be tuned.

    A target of several columns of 0 and 1 is multilabel: predictions and probabilities then have those columns.

    Args:
        model: None for an MLP made for the data, a function `f(n_in, n_out)`, or a module (a copy of it is trained).
        loss: "cross_entropy" (the default), "hinge", or a callable `loss(predict, batch)`.
        class_weight: {class: weight}, "balanced", or None.
        standardize: Give every feature mean 0 and standard deviation 1, by the training rows.
        random_state: The seed.
        prior: "layer", "tensor", "model", or a `Prior`, as in `pactrain.fit`.
        bound: As in `pactrain.fit`.
        preset: "auto", "paper", "authors", or a `pactrain.Rules`.
        delta: Probability with which the statements of the certificate may fail, all together.
        budget: The most time that `fit` may take: seconds, "5m"; or "100 epochs".
        prior_data: Part of the rows on which the prior is trained first; only the rest is counted.
        certificate: "standard" or "progressive", as in `pactrain.fit`.
        device: "cpu", "cuda" or "auto".

    Attributes:
        model_: The trained network.
        posterior_: The Gaussian over its weights.
        certificate_: What was proved.
        history_: One record per epoch.
        classes_: The classes, in the order of the probabilities.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if `X` had any.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> PACBayesClassifier(budget="10 epochs").fit(X, y).score(X, y) > 0.9
        True
    """

    def __init__(
        self,
        model: Factory | nn.Module | None = None,
        *,
        loss: str | AnyLoss | None = None,
        prior: str | Prior = "layer",
        bound: str = "auto",
        preset: str | Rules = "auto",
        delta: float = 0.05,
        budget: str | float | None = None,
        prior_data: float = 0.0,
        certificate: str = "standard",
        class_weight: dict[Any, float] | str | None = None,
        standardize: bool = True,
        device: str = "auto",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            model,
            loss=loss,
            prior=prior,
            bound=bound,
            preset=preset,
            delta=delta,
            budget=budget,
            prior_data=prior_data,
            certificate=certificate,
            standardize=standardize,
            device=device,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, **refused: Any) -> "PACBayesClassifier":
        """Train on rows and their classes.

        Args:
            X: Features, one row per example.
            y: Classes, or an indicator matrix of labels.
            **refused: Refused; `sample_weight` with the reason.

        Returns:
            The estimator itself.

        Raises:
            DataError: The rows or classes cannot be used.
        """
        refuse(refused)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, ensure_min_samples=2)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multiclass-multioutput":
            raise DataError(
                "y has several columns of classes; wrap the estimator in sklearn.multioutput.MultiOutputClassifier"
            )
        self.multilabel_ = kind == "multilabel-indicator"
        if self.multilabel_:
            target = np.asarray(y.toarray() if hasattr(y, "toarray") else y).astype(np.int64)
            self.classes_ = np.arange(target.shape[1])
        else:
            self.classes_, target = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            if len(self.classes_) < 2:
                raise DataError(f"y has a single class, {self.classes_[:1].tolist()[0]!r}: there is nothing to learn")
        self._choose_seed()
        loss, caveats = self._weighted(self._loss(), target)
        self._train(X, target, loss, len(self.classes_), caveats)
        return self

    def _loss(self) -> Loss:
        default = LOSSES["binary_cross_entropy"] if getattr(self, "multilabel_", False) else LOSSES["cross_entropy"]
        loss = default if self.loss in (None, "cross_entropy") else as_loss(self.loss, None)
        if loss.task == "regression":
            raise PactrainError(f"loss {loss.name!r} is for numbers; classes need cross_entropy or hinge")
        return loss

    def _weighted(self, loss: Loss, target: Array) -> tuple[Loss, list[Caveat]]:
        if self.class_weight is None:
            return loss, []
        if self.multilabel_ or not loss.of_outputs:
            raise DataError(
                "class_weight goes with a named loss and one class per example; write the weights into your loss"
            )
        labels = self.classes_[target]
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        caveats = [BALANCED] if self.class_weight == "balanced" else []
        return weighted(loss, torch.as_tensor(weights)), caveats

    def _probabilities(self) -> Callable[[Tensor], Tensor] | None:
        return self._loss().probabilities

    def predict(self, X: Any, *, draws: int | None = None) -> Array:
        """Predict the class of each row.

        Args:
            X: Features, one row per example.
            draws: Random networks whose probabilities are averaged; None asks the mean network.

        Returns:
            Classes, or an indicator matrix of labels.
        """
        scores = self._outputs(X) if draws is None else self._drawn(X, draws)[0]
        if self.multilabel_:
            return (scores > (0.0 if draws is None else 0.5)).long().numpy()
        return np.asarray(self.classes_[scores.argmax(1).numpy()])

    @available_if(lambda self: self._probabilities() is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, draws: int | None = None) -> Array:
        """Predict the probabilities of the classes.

        Args:
            X: Features, one row per example.
            draws: Random networks whose probabilities are averaged; None asks the mean network.

        Returns:
            One column per class, in the order of `classes_`.
        """
        if draws is not None:
            return self._drawn(X, draws)[0].numpy()
        to_probabilities = self._probabilities()
        assert to_probabilities is not None
        return to_probabilities(self._outputs(X)).numpy()


class PACBayesRegressor(RegressorMixin, PACBayesEstimator):  # type: ignore[misc]
    """A neural network regressor trained by minimising a PAC-Bayes bound; nothing has to be tuned.  `y` may have several columns.

    Args:
        loss: "mse" (the default), "l1", "huber", "log_cosh", "quantile", "quantile:0.9", or a callable; it sees standardised
            targets.
        model: None for an MLP made for the data, a function `f(n_in, n_out)`, or a module (a copy of it is trained).
        prior: "layer", "tensor", "model", or a `Prior`, as in `pactrain.fit`.
        bound: As in `pactrain.fit`.
        preset: "auto", "paper", "authors", or a `pactrain.Rules`.
        delta: Probability with which the statements of the certificate may fail, all together.
        budget: The most time that `fit` may take: seconds, "5m"; or "100 epochs".
        prior_data: Part of the rows on which the prior is trained first; only the rest is counted.
        certificate: "standard"; a progressive one is for classification.
        standardize: Give every feature mean 0 and standard deviation 1, by the training rows.
        device: "cpu", "cuda" or "auto".
        random_state: The seed.

    Attributes:
        model_: The trained network, whose outputs are standardised targets.
        posterior_: The Gaussian over its weights.
        certificate_: What was proved.
        history_: One record per epoch.
        target_mean_: Mean of the targets.
        target_scale_: Standard deviation of the targets.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if `X` had any.

    Example:
        >>> import numpy as np
        >>> X = np.linspace(0, 1, 64)[:, None]
        >>> mean, std = PACBayesRegressor(budget="10 epochs").fit(X, 300 + 20 * X[:, 0]).predict(X, return_std=True)
        >>> mean.shape, std.shape
        ((64,), (64,))
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, **refused: Any) -> "PACBayesRegressor":
        """Train on rows and their numbers.

        Args:
            X: Features, one row per example.
            y: Targets, in one column or several.
            **refused: Refused; `sample_weight` with the reason.

        Returns:
            The estimator itself.

        Raises:
            PactrainError: The rows or targets cannot be used, or the loss is for classes.
        """
        refuse(refused)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        check_size(y, "y")
        self._choose_seed()
        fitted = y[self._fitting(len(y))]
        self.target_mean_, scale = fitted.mean(axis=0), fitted.std(axis=0)
        self.target_scale_ = np.where(scale > 0, scale, 1.0)
        target = (y - self.target_mean_) / self.target_scale_
        loss, several = as_loss(self.loss or "mse", None), y.ndim > 1
        caveats = [scaled_target(None if several else float(self.target_scale_), self.prior_data)]
        if loss.task == "classification":
            raise PactrainError(f"loss {loss.name!r} is for classes; numbers need mse, l1, huber, log_cosh or quantile")
        if not several:
            loss = dataclasses.replace(loss, unit=float(self.target_scale_))
        self._train(X, target, loss, y.shape[1] if several else 1, caveats)
        return self

    def predict(self, X: Any, *, draws: int | None = None, return_std: bool = False) -> Any:
        """Predict the number for each row.

        Args:
            X: Features, one row per example.
            draws: Random networks that are averaged; None asks the mean network, or takes 100 with `return_std`.
            return_std: Return the spread over random networks too; noise in the target comes on top of it.

        Returns:
            The numbers in the target's own units, or the pair (numbers, spread).
        """
        if draws is None and not return_std:
            return self._in_units(self._outputs(X).numpy()) + self.target_mean_
        mean, std = self._drawn(X, draws or SPREAD_DRAWS)
        centre = self._in_units(mean.numpy()) + self.target_mean_
        return (centre, self._in_units(std.numpy())) if return_std else centre

    def _in_units(self, values: Array) -> Array:
        return np.asarray(values.reshape(-1, *np.shape(self.target_mean_)) * self.target_scale_)
