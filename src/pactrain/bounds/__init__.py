"""PAC-Bayes bounds, each an objective to train with and a value to report."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pactrain.bounds.base import Assumptions, Bound, ScalarBound
    from pactrain.bounds.bbb import BBB
    from pactrain.bounds.catoni import Catoni
    from pactrain.bounds.classic import Classic
    from pactrain.bounds.held_out import clopper_pearson
    from pactrain.bounds.kl import KL, kl_inverse
    from pactrain.bounds.lambda_ import Lambda
    from pactrain.bounds.moments import CGF, SubGaussian, casado, gamma_free
    from pactrain.bounds.objective import Objective, Terms
    from pactrain.bounds.quad import Quad
    from pactrain.bounds.single_draw import disintegrated
    from pactrain.bounds.unbounded import Unbounded

_HOME = {
    "BBB": "bbb",
    "CGF": "moments",
    "KL": "kl",
    "Assumptions": "base",
    "Bound": "base",
    "Catoni": "catoni",
    "Classic": "classic",
    "Lambda": "lambda_",
    "Objective": "objective",
    "Quad": "quad",
    "ScalarBound": "base",
    "SubGaussian": "moments",
    "Terms": "objective",
    "Unbounded": "unbounded",
    "casado": "moments",
    "clopper_pearson": "held_out",
    "disintegrated": "single_draw",
    "gamma_free": "moments",
    "kl_inverse": "kl",
}

__all__ = [
    "BBB", "CGF", "KL", "Assumptions", "Bound", "Catoni", "Classic", "Lambda", "Objective", "Quad",
    "ScalarBound", "SubGaussian", "Terms", "Unbounded", "casado", "clopper_pearson", "disintegrated", "gamma_free", "kl_inverse",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import on first use: most of these formulas do not need torch, and a certificate is rechecked without it."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"pactrain.bounds.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
