"""Which γ training is held at: a walk from a first guess, led by the loss that left-out examples would have.

The linearised network (`linearised.py`) says where to begin, but a network learns features that its linearisation does not
have, and how noisy the labels are shows only in training.  So stage 1 begins at that γ and, when it has been fitted there, asks
`left_out.py`.  Where the network is too sure of itself about examples that it has not seen (their loss would fall if all outputs were
smaller), it goes on for a while at a third of that γ, asks again, and so forth as long as the answers get better.  The state of the last γ that was clearly
better is kept.

Where the examples that it has seen are hardly better off than left-out ones, the network was not let go far enough (inputs that were not
scaled make all examples look alike to the linearised network): then the walk tries larger γ first.

Where it learns numbers and is too sure of them, one step down is tried, and taken if the loss falls by a two-hundredth of what one answer for all would have.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.rules.gamma.example_kernel import Unsuited
from pactrain.rules.gamma.trained_leave_one_out import Answer, LeftOut
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import gave_up

STEP = 10**0.5
"""From one γ down to the next."""

LENGTHS = 1.0, 0.25
"""Lengths of segments relative to training at one γ: of the first, and of each further one."""

STEPS_DOWN, STEPS_UP = 3, 3
"""Further values of γ that are tried in each direction, at most."""

HARDLY_FITTED = 0.5
"""Part of the left-out loss above which the loss of the same network on what it has seen means that it has not been fitted."""

LEAST_FALL = 1 / 16
"""Part by which a smaller γ has to lower the left-out loss to be taken.  One Newton step is too far for a network that is not linear around its weights, and
then overstates the loss the more the larger γ is: CNN9 on 3,000 images of CIFAR-10 would fall by another 5 %, and by eleven points of accuracy.  For the same
reason a loss that is lower at a larger γ is to be believed, however little."""

LEAST_EXPLAINED = 1 / 200
"""Part of the loss of one answer for all by which a smaller γ has to lower the left-out loss of numbers to be taken.  Where next to nothing is left to explain
(concrete, mpg), a smaller γ costs more than these answers, which are rough, can tell."""

CREDIBLE = 1.25
"""Times the left-out loss of the linearised network, before training, up to which that of the trained one is believed where it learns numbers.
What it has learned should help; if it seems to do harm, the network is too far from linear for one step to tell anything."""

MOST_WEIGHTS = 1 << 22
"""Weights above which there is no walk: each question takes a gradient of the whole network for hundreds of single examples."""

WITHOUT_CURVATURE = "hinge", "weighted_hinge"
"""Losses of our own for classes that are straight lines, without the curvature that leaving out needs: for these there is no walk."""

FEWEST_EPOCHS = 8
"""Epochs of training at one γ below which there is no walk: the shortest segment would be less than an epoch."""


@dataclass
class GammaWalk:
    """Where the walk is: γ = guess / STEP^here, with what was answered in every place it has been to; above the guess places are negative."""

    guess: float
    epochs: int  # of training at one γ
    most: float = 0.0  # γ that no place may exceed, beside the first
    numbers: bool = False
    credible: float = 0.0  # left-out loss of numbers at the guess above which nothing is believed
    here: int = 0
    answers: dict[int, Answer] = field(default_factory=dict)
    since: float = 0.0  # epoch at which the present segment began
    record: dict[str, Any] = field(default_factory=dict)  # what the history has of the best place

    @property
    def gamma(self) -> float:
        """The γ of the present segment."""
        return self.guess / STEP**self.here

    @property
    def best(self) -> int:
        """The last place with a loss below that of the best before it, clearly so on the way down for classes, and no more examples wrong."""
        best = 0
        for place, found in self.answers.items():
            before = self.answers[best]
            least = LEAST_FALL * abs(before.loss) if place > 0 and not self.numbers else 0.0
            gained = before.wrong - found.wrong
            if before.loss - found.loss > least and gained >= (LEAST_EXPLAINED if self.numbers and place else 0.0):
                best = place
        return best

    def part(self, epoch: float) -> float:
        """How much of the present segment is over, at this epoch."""
        length = LENGTHS[1] if self.answers else LENGTHS[0]
        return min(1.0, max(0.0, (epoch - self.since) / (length * self.epochs) + 1e-9))

    def go_on(self, found: Answer, epoch: float, *, seen: float = 0.0) -> bool:
        """Take in what was answered at the end of a segment, and the loss on what was `seen`, and choose the next γ.  False if there is no
        next: the best it is."""
        self.answers[self.here], self.since = found, epoch
        following = self._next(hardly_fitted=seen > HARDLY_FITTED * found.loss > 0)
        self.here = self.best if following is None else following
        return following is not None

    def _next(self, *, hardly_fitted: bool) -> int | None:
        here = self.here
        too_sure = self.answers[max(0, here)].slope > 0
        if self.numbers:
            return 1 if here == 0 and too_sure and self.answers[0].loss <= self.credible else None
        may_rise = here > -STEPS_UP and self.gamma * STEP <= self.most
        if here == 0 and hardly_fitted and may_rise:
            return -1
        if here > 0:
            falls = self.answers[here].loss < self.answers[here - 1].loss
            return here + 1 if too_sure and falls and here < STEPS_DOWN else None
        if here < 0 and may_rise and self.best == here:
            return here - 1
        return 1 if too_sure and self.best == 0 else None

    def tried(self) -> list[dict[str, float]]:
        """Every γ that was tried, and what was answered there."""
        told = ("loss", "slope") if self.numbers else Answer._fields
        return [
            {"gamma": self.guess / STEP**place} | {name: getattr(found, name) for name in told}
            for place, found in self.answers.items()
        ]

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"answers": [[place, *found] for place, found in self.answers.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        vars(self).update(state)
        self.answers = {int(place): Answer(*found) for place, *found in state["answers"]}


def longest(epochs: int, *, numbers: bool = False) -> int:
    """Epochs that no walk reaches, with so many at one γ."""
    further = 1 if numbers else max(STEPS_UP, 1 + STEPS_DOWN)  # a step up may be tried in vain before those down
    return math.ceil(LENGTHS[0] * epochs) + further * math.ceil(LENGTHS[1] * epochs) + 1


def leave_out(
    posterior: Posterior, batches: Batches, loss: AnyLoss, n: int, seed: int, *, numbers: bool
) -> LeftOut | None:
    """What is asked after each segment; None where it cannot be, or would take too long."""
    if posterior.num_weights > MOST_WEIGHTS or (isinstance(loss, Loss) and loss.name in WITHOUT_CURVATURE):
        return None
    try:
        return LeftOut(posterior, batches, loss, n, seed, settle=numbers)
    except Unsuited:
        return None
    except (PactrainError, RuntimeError) as error:  # some losses have no second derivative
        what = "The search for a better γ (how far the data may move the weights) was not made"
        gave_up(what, error, instead="γ stays at its first guess")
        return None
