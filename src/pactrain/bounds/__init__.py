"""PAC-Bayes bounds, each an objective to train with and a value to report."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pactrain.bounds.objective import Objective
    from pactrain.bounds.unbounded import Unbounded

__all__ = ["Objective", "Unbounded"]

_HOME = {"Objective": "pactrain.bounds.objective", "Unbounded": "pactrain.bounds.unbounded"}


def __getattr__(name: str) -> Any:
    """Import on first use: the certificate's formulas in this package must not need torch."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
