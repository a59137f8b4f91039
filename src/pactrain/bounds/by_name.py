"""Bounds by name, and the loss that each is trained on."""

from pactrain.bounds.base import Bound
from pactrain.bounds.bbb import BBB
from pactrain.bounds.catoni import Catoni
from pactrain.bounds.classic import Classic
from pactrain.bounds.kl import KL
from pactrain.bounds.lambda_ import Lambda
from pactrain.bounds.quad import Quad
from pactrain.problem.losses import AnyLoss, clipped

BOUNDED: dict[str, type[Bound]] = {
    "kl": KL,
    "quad": Quad,
    "lambda": Lambda,
    "classic": Classic,
    "catoni": Catoni,
    "bbb": BBB,
}
CONSTANT_MOMENT = ("subgaussian", "cgf_rodriguez")
UNBOUNDED = ("auto", "unbounded", "cgf", "paper")
NAMES = (*UNBOUNDED, *BOUNDED, *CONSTANT_MOMENT)


def training_loss(bound: str, loss: AnyLoss) -> AnyLoss:
    """The loss that is trained on: the user's own, or clipped to [0, 1] where the bound needs it."""
    return clipped(loss) if bound in BOUNDED else loss
