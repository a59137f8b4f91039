"""Which γ training is held at: a search from a first guess, led by the loss that left-out examples would have.

The linear network says where to begin, but how noisy the labels are shows only in training.  So, for classification, training begins at that γ
and each example's loss is then estimated as if it had been left out.  Where the network is too sure of itself about those (their loss would fall if
all outputs were smaller), training goes on for a while at a third of that γ; where it is not sure enough, at three times that γ.  So forth as
long as the loss falls and asks for the same direction.

The larger γ, the more the estimate exceeds the loss on new examples.  So any fall keeps a larger γ, and a smaller one is kept if the loss falls by
more than one standard error and no more examples are wrong.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.rules.constants import FURTHER_LENGTH, GAMMA_STEP, STEPS
from pactrain.rules.gamma.trained_leave_one_out import LeaveOneOut, LeftOutEstimate
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import gave_up

WITHOUT_CURVATURE = "hinge", "weighted_hinge"
"""Losses of our own for classification that are straight lines, without the curvature that leaving out needs."""

FEWEST_EPOCHS = math.ceil(2 / FURTHER_LENGTH)
"""Epochs of training at one γ below which there is no search: the shortest segment would be less than two epochs."""


@dataclass
class GammaWalk:
    """Where the search is: γ = guess / GAMMA_STEP^here, but not above `most`, with an estimate for every place; above the guess places are negative."""

    guess: float
    epochs: int  # of training at one γ
    most: float = math.inf
    here: int = 0
    answers: dict[int, LeftOutEstimate] = field(default_factory=dict)
    since: float = 0.0  # epoch at which the present segment began
    record: dict[str, Any] = field(default_factory=dict)  # what the history has of the best place

    @property
    def gamma(self) -> float:
        """The γ of the present segment."""
        return self._gamma_at(self.here)

    def _gamma_at(self, place: int) -> float:
        return min(self.most, self.guess / GAMMA_STEP**place)

    @property
    def best(self) -> int:
        """The last place with a loss below that of the best before it; on the way down clearly so, and with no more examples wrong."""
        best = 0
        for place, found in self.answers.items():
            before = self.answers[best]
            clearly = found.falls_clearly(before) and found.wrong <= before.wrong
            if clearly if place > 0 else found.loss < before.loss:
                best = place
        return best

    def _length(self) -> float:
        """Epochs of the present segment."""
        return self.epochs * (FURTHER_LENGTH if self.answers else 1.0)

    def part(self, epoch: float) -> float:
        """How much of the present segment is over, at this epoch."""
        return min(1.0, max(0.0, (epoch - self.since) / self._length() + 1e-9))

    def segment_end(self) -> int:
        """The epoch at which the present segment is over."""
        return math.ceil(self.since + self._length() - 1e-9)

    def go_on(self, found: LeftOutEstimate, epoch: float) -> bool:
        """Take in the estimate at the end of a segment, and choose the next γ.  False if there is no next: the best it is."""
        here, down = self.here, found.slope > 0
        falls = here == 0 or found.loss < self.answers[here + (1 if here < 0 else -1)].loss
        following = here + (1 if down else -1)
        room = abs(following) <= STEPS and (down or self.gamma < self.most)
        self.answers[here], self.since = found, epoch
        goes = falls and room and abs(following) > abs(here)
        self.here = following if goes else self.best
        return goes

    def tried(self) -> list[dict[str, float]]:
        """Every γ that was tried, with its estimate."""
        return [
            {"gamma": self._gamma_at(i), "loss": found.loss, "slope": found.slope, "wrong": found.wrong}
            for i, found in self.answers.items()
        ]

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"answers": [[place, *found] for place, found in self.answers.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        vars(self).update(state)
        self.answers = {int(place): LeftOutEstimate(*found) for place, *found in state["answers"]}


def longest(epochs: int) -> int:
    """Epochs that no search reaches, with so many at one γ."""
    return epochs + STEPS * math.ceil(FURTHER_LENGTH * epochs) + 1


def leave_out(posterior: Posterior, batches: Batches, loss: Loss, n: int, seed: int) -> LeaveOneOut | None:
    """The estimate that is made after each segment; None where it cannot be made."""
    if loss.name in WITHOUT_CURVATURE:
        return None
    try:
        return LeaveOneOut(posterior, batches, loss, n, seed)
    except (PactrainError, RuntimeError) as error:  # some losses have no second derivative
        what = "The search for a better γ (how far the data may move the weights) was not made"
        gave_up(what, error, instead="γ stays at its first guess")
        return None
