"""Train any PyTorch network by minimising a PAC-Bayes bound."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pactrain import auto, bounds, losses, models, sklearn
    from pactrain.auto import Rules
    from pactrain.certificate import Certificate
    from pactrain.certify import certify
    from pactrain.errors import PactrainError
    from pactrain.fit import Result, fit
    from pactrain.losses import Loss
    from pactrain.moment import Moment
    from pactrain.posterior import Posterior
    from pactrain.prior import Prior
    from pactrain.scan import estimate_moment

__all__ = [
    "Certificate",
    "Loss",
    "Moment",
    "PactrainError",
    "Posterior",
    "Prior",
    "Result",
    "Rules",
    "auto",
    "bounds",
    "certify",
    "estimate_moment",
    "fit",
    "losses",
    "models",
    "sklearn",
]

_HOME = {
    "Certificate": "certificate",
    "Loss": "losses",
    "Moment": "moment",
    "PactrainError": "errors",
    "Posterior": "posterior",
    "Prior": "prior",
    "Result": "fit",
    "Rules": "auto",
    "certify": "certify",
    "estimate_moment": "scan",
    "fit": "fit",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must answer `--help` without waiting for torch."""
    if name in ("auto", "bounds", "losses", "models", "sklearn"):
        return import_module(f"pactrain.{name}")
    if name in _HOME:
        value = getattr(import_module(f"pactrain.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pactrain' has no attribute {name!r}")


class _Package(ModuleType):
    """Keeps `pactrain.fit` and `pactrain.certify` the functions, not the modules of the same names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
