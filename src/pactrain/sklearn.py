"""scikit-learn estimators: `PACBayesClassifier` and `PACBayesRegressor`.

Features are standardised with the training rows unless `standardize=False`, targets of regression always; predictions are
in the target's own units.  Standardising uses the rows that the bound counts, so the certificate's numbers are then called
estimated, not certified.  With `prior_data` the means and scales come from the prior's rows alone and the numbers stay certified;
so they do with `standardize=False` and features scaled by constants known beforehand.
"""

import copy
import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor, nn

from pactrain import fit
from pactrain.certification.caveats import seen_before
from pactrain.certification.certificate import Certificate
from pactrain.certification.statement import Caveat
from pactrain.data.task import STANDARDISED, fitting_rows, scaled_target
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior, fresh_source
from pactrain.models.mlp import mlp
from pactrain.problem.batches import EVALUATION_BATCH
from pactrain.problem.losses import LOSSES, MULTILABEL, AnyLoss, Loss, resolve, weighted
from pactrain.problem.module_modes import evaluating
from pactrain.rules.presets import Rules
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.seeds import seed_global

Factory = Callable[[int, int], nn.Module]
Array = NDArray[Any]


class PACBayesEstimator(BaseEstimator):  # type: ignore[misc]
    """A network trained by `pactrain.fit` on rows of features; what it is trained to predict, a subclass says."""

    model_: nn.Module
    posterior_: Posterior
    certificate_: Certificate

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
        standardize: bool = True,
        device: str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.loss = loss
        self.prior = prior
        self.bound = bound
        self.preset = preset
        self.delta = delta
        self.budget = budget
        self.prior_data = prior_data
        self.standardize = standardize
        self.device = device
        self.random_state = random_state

    # -- training --------------------------------------------------------------------------------------------------

    def _choose_seed(self) -> None:
        whole = isinstance(self.random_state, (int, np.integer))
        self.seed_ = int(self.random_state if whole else check_random_state(self.random_state).randint(2**31 - 1))

    def _fitting(self, n: int) -> Array:
        """Numbers of the rows that means and scales are taken from: those of the prior, if it has rows of its own."""
        return fitting_rows(np.arange(n), self.prior_data, self.seed_)

    def _train(self, x: Array, target: Array, loss: AnyLoss, outputs: int, caveats: list[Caveat]) -> None:
        """Fit the network on validated rows and keep what comes of it."""
        self.scaler_ = StandardScaler().fit(x[self._fitting(len(x))]) if self.standardize else None
        self.n_outputs_ = outputs
        if self.standardize and not self.prior_data:
            caveats = [STANDARDISED, *caveats]
        if isinstance(self.model, nn.Module):
            caveats = [*caveats, *seen_before(self.model)]
        result = fit(
            self._network(),
            (self._scaled(x), target),
            loss=loss,
            prior=self._prior(),
            bound=self.bound,
            preset=self.preset,
            delta=self.delta,
            budget=self.budget,
            prior_data=self.prior_data,
            device=self.device,
            seed=self.seed_,
            caveats=caveats,
        )
        if result.interrupted:
            raise KeyboardInterrupt  # a search over settings must stop too, not go on with the next one
        for note in result.notes:
            warnings.warn(note, ConvergenceWarning, stacklevel=3)
        self.model_, self.posterior_ = result.model, result.posterior
        self.certificate_, self.history_ = result.certificate, result.history

    def _prior(self) -> Prior:
        """The prior, with its source where the network is our own."""
        spec = self.prior if isinstance(self.prior, Prior) else Prior(per=self.prior)  # type: ignore[arg-type]
        return spec if self.model is not None or spec.source else replace(spec, source=fresh_source(self.seed_))

    def _network(self) -> nn.Module:
        """A network of its own: the estimator's parameters are never changed by training."""
        if isinstance(self.model, nn.Module):
            return copy.deepcopy(self.model)
        make = self.model or (lambda inputs, outputs: mlp(inputs, outputs, seed=self.seed_))
        if not callable(make):
            raise PactrainError(
                f"model is {self.model!r}; pass None for an MLP, a function f(n_in, n_out), or a torch module"
            )
        with torch.random.fork_rng(devices=[]):
            seed_global(self.seed_)
            network = make(self.n_features_in_, self.n_outputs_)
        if not isinstance(network, nn.Module):
            raise PactrainError(f"the function given as model returned {type(network).__name__}, not a torch module")
        return network

    def _scaled(self, x: Array) -> Array:
        return np.asarray(x if self.scaler_ is None else self.scaler_.transform(x))

    # -- predicting ------------------------------------------------------------------------------------------------

    def _parts(self, x: Any) -> tuple[Tensor, ...]:
        """Rows as the network takes them, some at a time."""
        check_is_fitted(self)
        rows = self._scaled(validate_data(self, x, reset=False, dtype=np.float64))
        inputs = torch.tensor(rows).to(next(self.model_.parameters()))
        return torch.split(inputs, EVALUATION_BATCH)

    @torch.no_grad()
    def _outputs(self, x: Any) -> Tensor:
        """The mean network's outputs, in float64."""
        parts = self._parts(x)
        with evaluating(self.model_):
            return torch.cat([self.model_(part).double().cpu() for part in parts])

    def _drawn(self, x: Any, draws: int) -> tuple[Tensor, Tensor]:
        """Mean and spread of the randomised predictor: of probabilities, where there are some."""
        parts = self._parts(x)
        found = [self.posterior_.predict(part, draws=draws, seed=self.seed_) for part in parts]
        return torch.cat([p.mean for p in found]).cpu(), torch.cat([p.std for p in found]).cpu()

    # -- saving ----------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Arrays and plain values: joblib and skops can both store them.  A module given as `model` is stored as it is."""
        state = dict(super().__getstate__())
        if "certificate_" in state:
            state["certificate_"] = self.certificate_.to_dict()
        if "posterior_" in state and not isinstance(self.model, nn.Module):
            del state["model_"], state["posterior_"]
            tensors = self.posterior_.state_dict()
            state["weights_"] = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
            state["prior_fixed_"] = self.posterior_.prior_fixed
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the network again and give it its weights."""
        state = dict(state)
        weights, prior_fixed = state.pop("weights_", None), state.pop("prior_fixed_", False)
        super().__setstate__(state)
        if "certificate_" in state:
            self.certificate_ = Certificate.from_dict(state["certificate_"])
        if weights is not None:
            self.posterior_ = Posterior(self._network(), self._prior())
            self.posterior_.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
            self.posterior_.prior_fixed = prior_fixed
            self.posterior_.probabilities = self._probabilities()
            self.model_ = self.posterior_.model

    def _probabilities(self) -> Callable[[Tensor], Tensor] | None:
        return None


def refuse(refused: dict[str, Any]) -> None:
    """Say why what `fit` was given beside rows and targets cannot be followed."""
    given = {name: value for name, value in refused.items() if value is not None}
    if "sample_weight" in given:
        raise DataError(
            "sample_weight is not supported: the bound counts n independent examples that all weigh the same, and does not "
            "hold for weighted ones; repeat no rows either. For rare classes use class_weight, which changes the loss"
        )
    if given:
        raise TypeError(f"fit() got unexpected keyword arguments: {', '.join(given)}")


CLASS_WEIGHTS = Caveat("the class weights were computed from the same training rows", "estimated")
SPREAD_DRAWS = 100


class PACBayesClassifier(ClassifierMixin, PACBayesEstimator):  # type: ignore[misc]
    """A neural network classifier trained by minimising a PAC-Bayes bound; nothing has to be tuned.

    model:        None for an MLP made for the data, a function `f(n_in, n_out)`, or a module (a copy of it is trained).
    loss:         "cross_entropy" (the default), "hinge", or a callable `loss(predict, batch)`.
    class_weight: {class: weight}, "balanced", or None.
    standardize:  give every feature mean 0 and standard deviation 1, by the training rows.
    Everything else is as in `pactrain.fit`; `random_state` is its seed.

    After `fit`: `model_`, `posterior_`, `certificate_`, `history_`, `classes_`, `n_features_in_`, `feature_names_in_`.
    A target of several columns of 0 and 1 is multilabel: predictions and probabilities then have those columns.

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
        """Train on rows `X` and their classes, or their indicator matrix of labels, `y`."""
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

    def _loss(self) -> AnyLoss:
        default = MULTILABEL if getattr(self, "multilabel_", False) else LOSSES["cross_entropy"]
        loss = default if self.loss in (None, "cross_entropy") else resolve(self.loss, None)
        if isinstance(loss, Loss) and loss.task != "classification":
            raise PactrainError(f"loss {loss.name!r} is for numbers; classes need cross_entropy or hinge")
        return loss

    def _weighted(self, loss: AnyLoss, target: Array) -> tuple[AnyLoss, list[Caveat]]:
        if self.class_weight is None:
            return loss, []
        if self.multilabel_ or not isinstance(loss, Loss):
            raise DataError(
                "class_weight goes with a named loss and one class an example; write the weights into your loss"
            )
        labels = self.classes_[target]
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        caveats = [CLASS_WEIGHTS] if self.class_weight == "balanced" else []
        return weighted(loss, torch.as_tensor(weights)), caveats

    def _probabilities(self) -> Callable[[Tensor], Tensor] | None:
        loss = self._loss()
        return loss.probabilities if isinstance(loss, Loss) else None

    def predict(self, X: Any, *, draws: int | None = None) -> Array:
        """The class of each row by the mean network, or by the mean probability of `draws` random networks."""
        scores = self._outputs(X) if draws is None else self._drawn(X, draws)[0]
        if self.multilabel_:
            return (scores > (0.0 if draws is None else 0.5)).long().numpy()
        return np.asarray(self.classes_[scores.argmax(1).numpy()])

    @available_if(lambda self: self._probabilities() is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, draws: int | None = None) -> Array:
        """Probabilities of the classes by the mean network, or averaged over `draws` random networks."""
        if draws is not None:
            return self._drawn(X, draws)[0].numpy()
        turn = self._probabilities()
        assert turn is not None
        return turn(self._outputs(X)).numpy()


class PACBayesRegressor(RegressorMixin, PACBayesEstimator):  # type: ignore[misc]
    """A neural network for numbers trained by minimising a PAC-Bayes bound; nothing has to be tuned.

    loss: "mse" (the default), "l1", "huber", "log_cosh", "quantile", "quantile:0.9", or a callable; it sees standardised
          targets.  Everything else is as in `PACBayesClassifier`.

    After `fit`: `model_` (whose outputs are standardised targets), `posterior_`, `certificate_`, `history_`,
    `target_mean_`, `target_scale_`, `n_features_in_`, `feature_names_in_`.  `y` may have several columns.

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
        """Train on rows `X` and their numbers `y`."""
        refuse(refused)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        self._choose_seed()
        fitted = y[self._fitting(len(y))]
        self.target_mean_, scale = fitted.mean(axis=0), fitted.std(axis=0)
        self.target_scale_ = np.where(scale > 0, scale, 1.0)
        target = (y - self.target_mean_) / self.target_scale_
        loss, several = resolve(self.loss or "mse", None), y.ndim > 1
        caveats = [scaled_target(None if several else float(self.target_scale_), self.prior_data)]
        if isinstance(loss, Loss) and loss.task != "regression":
            raise PactrainError(f"loss {loss.name!r} is for classes; numbers need mse, l1, huber, log_cosh or quantile")
        if not several and isinstance(loss, Loss):
            loss = dataclasses.replace(loss, unit=float(self.target_scale_))
        self._train(X, target, loss, y.shape[1] if several else 1, caveats)
        return self

    def predict(self, X: Any, *, draws: int | None = None, return_std: bool = False) -> Any:
        """The number for each row by the mean network, or the mean of `draws` random networks; their spread if asked for.

        The spread is that of the predictor's weights alone: noise in the target comes on top of it.
        """
        if draws is None and not return_std:
            return self._in_units(self._outputs(X).numpy()) + self.target_mean_
        mean, std = self._drawn(X, draws or SPREAD_DRAWS)
        centre = self._in_units(mean.numpy()) + self.target_mean_
        return (centre, self._in_units(std.numpy())) if return_std else centre

    def _in_units(self, values: Array) -> Array:
        return np.asarray(values.reshape(-1, *np.shape(self.target_mean_)) * self.target_scale_)
