"""Which γ training is held at: a search from a first guess, led by the loss that left-out examples would have.

The linear network says where to begin, but how noisy the labels are shows only in training.  So, for classification, training begins at that γ
and each example's loss is then estimated as if it had been left out.  Where the network is too sure of itself about those (their loss would fall if
all outputs were smaller), training goes on for a while at a third of that γ, and so forth as long as the loss falls.  A smaller γ is kept if
the loss falls by more than one standard error, and no more examples are wrong.

Where the training examples are hardly better off than left-out ones, the network was not let go far enough (inputs with a large part in
common make all examples look alike to the linear network): then larger γ are tried first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.rules.constants import FURTHER_LENGTH, GAMMA_STEP, HARDLY_FITTED, MOST_WEIGHTS, STEPS
from pactrain.rules.gamma.trained_leave_one_out import LeftOut, LeftOutEstimate
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import gave_up

WITHOUT_CURVATURE = "hinge", "weighted_hinge"
"""Losses of our own for classification that are straight lines, without the curvature that leaving out needs."""

FEWEST_EPOCHS = math.ceil(2 / FURTHER_LENGTH)
"""Epochs of training at one γ below which there is no search: the shortest segment would be less than two epochs."""


@dataclass
class GammaWalk:
    """Where the search is: γ = guess / GAMMA_STEP^here, with an estimate for every place; above the guess places are negative."""

    guess: float
    epochs: int  # of training at one γ
    most: float = math.inf  # γ that no place may exceed, beside the first
    here: int = 0
    answers: dict[int, LeftOutEstimate] = field(default_factory=dict)
    since: float = 0.0  # epoch at which the present segment began
    record: dict[str, Any] = field(default_factory=dict)  # what the history has of the best place

    @property
    def gamma(self) -> float:
        """The γ of the present segment."""
        return self.guess / GAMMA_STEP**self.here

    @property
    def best(self) -> int:
        """The last place with a loss below that of the best before it, clearly so on the way down, and no more examples wrong."""
        best = 0
        for place, found in self.answers.items():
            before = self.answers[best]
            falls = found.falls_clearly(before) if place > 0 else found.loss < before.loss
            if falls and found.wrong <= before.wrong:
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

    def go_on(self, found: LeftOutEstimate, epoch: float, *, seen: float = 0.0) -> bool:
        """Take in the estimate at the end of a segment, and the loss on the training examples, and choose the next γ.  False if there is
        no next: the best it is."""
        self.answers[self.here], self.since = found, epoch
        following = self._next(hardly_fitted=seen > HARDLY_FITTED * found.loss > 0)
        self.here = self.best if following is None else following
        return following is not None

    def _next(self, *, hardly_fitted: bool) -> int | None:
        here, too_sure = self.here, self.answers[max(0, self.here)].slope > 0
        if here > 0:
            falls = self.answers[here].loss < self.answers[here - 1].loss
            return here + 1 if too_sure and falls and here < STEPS else None
        may_rise = here > -STEPS and self.gamma * GAMMA_STEP <= self.most
        if may_rise and (hardly_fitted if here == 0 else self.best == here):
            return here - 1
        return 1 if too_sure and self.best == 0 else None

    def tried(self) -> list[dict[str, float]]:
        """Every γ that was tried, with its estimate."""
        return [
            {"gamma": self.guess / GAMMA_STEP**i, "loss": found.loss, "slope": found.slope, "wrong": found.wrong}
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
    """Epochs that no search reaches, with so many at one γ; a step up may be tried in vain before those down."""
    return epochs + (1 + STEPS) * math.ceil(FURTHER_LENGTH * epochs) + 1


def leave_out(posterior: Posterior, batches: Batches, loss: Loss, n: int, seed: int) -> LeftOut | None:
    """The estimate that is made after each segment; None where it cannot be made, or would take too long."""
    if posterior.num_weights > MOST_WEIGHTS or loss.name in WITHOUT_CURVATURE:
        return None
    try:
        return LeftOut(posterior, batches, loss, n, seed)
    except (PactrainError, RuntimeError) as error:  # some losses have no second derivative
        what = "The search for a better γ (how far the data may move the weights) was not made"
        gave_up(what, error, instead="γ stays at its first guess")
        return None
