"""How long training goes on and at what rate: epochs and learning rates, within the user's budget."""

import math
import sys

from pactrain.rules.gamma.walk import GammaWalk, longest
from pactrain.rules.rules import Rules
from pactrain.training.budget import Budget
from pactrain.training.state import Progress


class Pace:
    """The most epochs of each stage, by the rules, the budget and the walk, and what follows from them."""

    def __init__(self, rules: Rules, budget: Budget, steps_per_epoch: int, walk: GammaWalk | None) -> None:
        self.rules, self.budget, self.steps_per_epoch, self.walk = rules, budget, steps_per_epoch, walk
        rule_epochs = rules.stage1_epochs(steps_per_epoch)
        self.stage1_limit, self.stage2_limit = budget.epochs_of_stages(rule_epochs, rules)
        if walk is not None:
            room = sys.maxsize if budget.epochs is None else budget.epochs - self.stage2_limit
            self.stage1_limit = min(room, longest(rule_epochs))

    def _done_and_limit(self, p: Progress) -> tuple[int, int]:
        return (p.stage1_epochs, self.stage1_limit) if p.stage == 1 else (p.stage2_epochs, self.stage2_limit)

    def stage1_over(self, p: Progress) -> bool:
        """True if stage 1 has had its epochs or its time."""
        return p.stage1_epochs >= self.stage1_limit or self.budget.stage1_over(p.seconds, self.rules)

    def stage2_over(self, p: Progress) -> bool:
        """True if stage 2 has had its epochs or its time, or has not improved for `stage2_patience` epochs."""
        return (
            p.stage2_epochs >= self.stage2_limit
            or p.epochs_since_best >= self.rules.stage2_patience
            or self.budget.over(p.seconds)
        )

    def rate_factor(self, p: Progress, index: int, now: float) -> float:
        """What is left of the rate at a step of the present epoch, `now` seconds after the start: half a cosine."""
        done, limit = self._done_and_limit(p)
        epoch = done + index / self.steps_per_epoch
        share = epoch / max(1, limit)
        if self.walk is not None and p.stage == 1:  # each segment for itself, as far as the budget goes
            share = max(self.walk.part(epoch), share if self.budget.epochs is not None else 0.0)
        share = min(1.0, max(share, self.budget.share_of_stage(p.stage, now, self.rules)))
        return 0.5 * (1 + math.cos(math.pi * share))

    def most_epochs(self, p: Progress) -> int:
        """The epoch at which the present stage ends at the latest, by its limits on epochs and on time."""
        done, limit = self._done_and_limit(p)
        return self._end(p, done, limit)

    def expected_epochs(self, p: Progress) -> int:
        """The epoch at which training is likely to end: a search over γ ends with its present segment, until it is known to go on."""
        if p.done:
            return p.epoch
        done, limit = self._done_and_limit(p)
        if self.walk is not None and p.stage == 1:
            limit = min(limit, self.walk.segment_end())
        return self._end(p, done, limit)

    def _end(self, p: Progress, done: int, limit: int) -> int:
        share = self.budget.share_of_stage(p.stage, p.seconds, self.rules)
        in_time = math.ceil(done / share) if done and share > 0 else limit
        return p.epoch - done + max(done, min(limit, in_time))
