"""What the scikit-learn estimators share: building the network, training it, calling it, saving it."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from pactrain import fit
from pactrain.certification.before_training import Described
from pactrain.certification.caveats import seen_before
from pactrain.certification.certificate import Certificate
from pactrain.certification.statement import Caveat
from pactrain.data.cell_values import check_size
from pactrain.data.splits import fitting_rows
from pactrain.data.task import STANDARDISED
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior, fresh_source
from pactrain.models.mlp import mlp
from pactrain.problem.batches import EVALUATION_BATCH
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.problem.module_modes import evaluating
from pactrain.problem.uncounted_part import uncounted_part
from pactrain.rules.rules import Rules
from pactrain.runs.prediction import finite
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
        certificate: str = "standard",
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
        self.certificate = certificate
        self.standardize = standardize
        self.device = device
        self.random_state = random_state

    # -- training --------------------------------------------------------------------------------------------------

    def _choose_seed(self) -> None:
        whole = isinstance(self.random_state, (int, np.integer))
        self.seed_ = int(self.random_state if whole else check_random_state(self.random_state).randint(2**31 - 1))

    def _fitting(self, n: int) -> Array:
        """Numbers of the rows that means and scales are taken from: those that no statement counts, if there are any."""
        return fitting_rows(np.arange(n), uncounted_part(self.prior_data, self.certificate), self.seed_)

    def _train(self, x: Array, target: Array, loss: Loss, outputs: int, caveats: list[Caveat]) -> None:
        """Fit the network on validated rows and keep the result."""
        if self.standardize:
            check_size(x, "X")
        self.scaler_ = StandardScaler().fit(x[self._fitting(len(x))]) if self.standardize else None
        self.n_outputs_ = outputs
        if self.standardize and not uncounted_part(self.prior_data, self.certificate):
            caveats = [STANDARDISED, *caveats]
        if isinstance(self.model, nn.Module):
            caveats = [*caveats, *seen_before(self.model)]
        result = fit(
            self._network(),
            Described((self._scaled(x), target), caveats=caveats),
            loss=loss,
            prior=self._prior(),
            bound=self.bound,
            preset=self.preset,
            delta=self.delta,
            budget=self.budget,
            prior_data=self.prior_data,
            certificate=self.certificate,
            device=self.device,
            seed=self.seed_,
        )
        if result.interrupted:
            raise KeyboardInterrupt  # a search over settings must stop too, not go on with the next one
        for note in result.notes:
            warnings.warn(note, ConvergenceWarning, stacklevel=3)
        self.model_, self.posterior_ = result.model, result.posterior
        self.certificate_, self.history_ = result.certificate, result.history

    def _prior(self) -> Prior:
        """The prior, with its source where the network is our own."""
        spec = Prior.of(self.prior)
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
            return finite(torch.cat([self.model_(part).double().cpu() for part in parts]))

    def _drawn(self, x: Any, draws: int) -> tuple[Tensor, Tensor]:
        """Mean and spread of the randomised predictor: of probabilities, where there are some."""
        parts = self._parts(x)
        found = [self.posterior_.predict(part, draws=draws, seed=self.seed_) for part in parts]
        return finite(torch.cat([p.mean for p in found])).cpu(), torch.cat([p.std for p in found]).cpu()

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
