"""Train any PyTorch network by minimising a PAC-Bayes bound."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pactrain import bounds, models, sklearn
    from pactrain.bounds.moment import Moment
    from pactrain.certification.certificate import Certificate
    from pactrain.certification.certify import certify
    from pactrain.distributions.posterior import Posterior
    from pactrain.distributions.prior import Prior
    from pactrain.fit import fit
    from pactrain.models.load_run import load
    from pactrain.problem.augmentation import augmented
    from pactrain.problem.losses import Loss
    from pactrain.rules.rules import Rules
    from pactrain.runs.conformal import conformal_quantiles
    from pactrain.runs.prediction import Prediction
    from pactrain.runs.result import Result
    from pactrain.runtime.errors import PactrainError
    from pactrain.scan.estimate import estimate_moment
    from pactrain.training.prepare import prepare

__all__ = [
    "Certificate",
    "Loss",
    "Moment",
    "PactrainError",
    "Posterior",
    "Prediction",
    "Prior",
    "Result",
    "Rules",
    "augmented",
    "bounds",
    "certify",
    "conformal_quantiles",
    "estimate_moment",
    "fit",
    "load",
    "models",
    "prepare",
    "sklearn",
]

_HOME = {
    "Certificate": "certification.certificate",
    "Loss": "problem.losses",
    "Moment": "bounds.moment",
    "PactrainError": "runtime.errors",
    "Posterior": "distributions.posterior",
    "Prediction": "runs.prediction",
    "Prior": "distributions.prior",
    "Result": "runs.result",
    "Rules": "rules.rules",
    "augmented": "problem.augmentation",
    "certify": "certification.certify",
    "conformal_quantiles": "runs.conformal",
    "estimate_moment": "scan.estimate",
    "fit": "fit",
    "load": "models.load_run",
    "prepare": "training.prepare",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must answer `--help` without waiting for torch."""
    if name in ("bounds", "models", "sklearn"):
        return import_module(f"pactrain.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'pactrain' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"pactrain.{_HOME[name]}"), name)  # `fit`: the function, not its module
    return globals()[name]
