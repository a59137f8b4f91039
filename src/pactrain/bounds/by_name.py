"""Bounds by name."""

from pactrain.bounds.base import ScalarBound
from pactrain.bounds.bbb import BBB
from pactrain.bounds.catoni import Catoni
from pactrain.bounds.classic import Classic
from pactrain.bounds.kl import KL
from pactrain.bounds.lambda_ import Lambda
from pactrain.bounds.quad import Quad

BOUNDED: dict[str, type[ScalarBound]] = {
    "kl": KL,
    "quad": Quad,
    "lambda": Lambda,
    "classic": Classic,
    "catoni": Catoni,
    "bbb": BBB,
}
"""Those for losses in [0, 1]."""

CONSTANT_MOMENT = ("subgaussian", "cgf_rodriguez")
UNBOUNDED = ("auto", "unbounded", "cgf", "paper")
NAMES = (*UNBOUNDED, *BOUNDED, *CONSTANT_MOMENT)
