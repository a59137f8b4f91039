"""Which γ training is held at: a walk down from a first guess, led by the loss that left-out examples would have.

The linearised network (`linearised.py`) says where to begin, but a network learns features that its linearisation does not
have, and how noisy the labels are shows only in training.  So stage 1 begins at that γ and, when it has been fitted there, asks
`left_out.py`; then it goes on for a while at a third of it, asks again, and so forth as long as the answers get better.  The state of
the last γ that was clearly better is kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pactrain.batches import Batches
from pactrain.left_out import LeftOut, Opaque
from pactrain.losses import AnyLoss
from pactrain.posterior import Posterior

STEP = 10**0.5
"""From one γ down to the next."""

LENGTHS = 1.0, 0.25
"""Lengths of segments relative to training at one γ: of the first, and of each further one."""

STEPS_DOWN = 3
"""Further values of γ that are tried, at most."""

LEAST_FALL = 1 / 16
"""Part by which a smaller γ has to lower the left-out loss to be taken.  One Newton step is too far for a network that is not linear around its weights, and
then overstates the loss the more the larger γ is: CNN9 on 3,000 images of CIFAR-10 would fall by another 5 %, and by eleven points of accuracy."""

MOST_WEIGHTS = 1 << 22
"""Weights above which there is no walk: each question takes a gradient of the whole network for hundreds of single examples."""

FEWEST_EPOCHS = 8
"""Epochs of training at one γ below which there is no walk: the shortest segment would be less than an epoch."""


@dataclass
class GammaWalk:
    """Where the walk is: γ = guess / STEP^here, with the left-out loss of every place it has been to."""

    guess: float
    epochs: int  # of training at one γ
    here: int = 0
    losses: dict[int, float] = field(default_factory=dict)
    since: float = 0.0  # epoch at which the present segment began
    record: dict[str, Any] = field(default_factory=dict)  # what the history has of the best place

    @property
    def gamma(self) -> float:
        """The γ of the present segment."""
        return self.guess / STEP**self.here

    @property
    def best(self) -> int:
        """The last place with a loss clearly below that of the best before it."""
        best = 0
        for place, loss in self.losses.items():
            if self.losses[best] - loss > LEAST_FALL * abs(self.losses[best]):
                best = place
        return best

    def part(self, epoch: float) -> float:
        """How much of the present segment is over, at this epoch."""
        length = LENGTHS[1] if self.losses else LENGTHS[0]
        return min(1.0, max(0.0, (epoch - self.since) / (length * self.epochs) + 1e-9))

    def go_on(self, loss: float, epoch: float) -> bool:
        """Take in the loss at the end of a segment and choose the next γ.  False if there is no next: the best it is."""
        place = self.here
        self.losses[place], self.since = loss, epoch
        more = place < STEPS_DOWN and (place == 0 or loss < self.losses[place - 1])
        self.here = place + 1 if more else self.best
        return more

    def tried(self) -> list[dict[str, float]]:
        """Every γ that was tried, with the mean loss of left-out examples there."""
        return [{"gamma": self.guess / STEP**place, "loss": loss} for place, loss in self.losses.items()]

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"losses": [list(item) for item in self.losses.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        vars(self).update(state)
        self.losses = {int(place): loss for place, loss in state["losses"]}


def longest(epochs: int) -> int:
    """Epochs that no walk reaches, with so many at one γ."""
    return math.ceil(LENGTHS[0] * epochs) + STEPS_DOWN * math.ceil(LENGTHS[1] * epochs) + 1


def leave_out(posterior: Posterior, batches: Batches, loss: AnyLoss, n: int, seed: int) -> LeftOut | None:
    """What is asked after each segment; None where it cannot be, or would take too long."""
    if posterior.num_weights > MOST_WEIGHTS:
        return None
    try:
        return LeftOut(posterior, batches, loss, n, seed)
    except (Opaque, RuntimeError, ValueError, IndexError):  # as for the linearised network
        return None
