"""How long training goes on and at what rate: the user's budget, epochs and learning rates."""

import math
import re
import sys
from dataclasses import dataclass, replace

from pactrain.rules.gamma.walk import GammaWalk, longest
from pactrain.rules.rules import Rules
from pactrain.runtime.errors import PactrainError
from pactrain.training.state import Progress

_UNITS = dict.fromkeys(("s", "sec", "second", "seconds"), 1.0)
_UNITS |= dict.fromkeys(("m", "min", "minute", "minutes"), 60.0) | dict.fromkeys(("h", "hour", "hours"), 3600.0)


@dataclass(frozen=True)
class Budget:
    """The most time that a run may take from its beginning to its end, and the most epochs of training.

    Attributes:
        seconds: Time; that of a plan is for training alone, of which stage 1 gets what stage 2 may not need.
        epochs: Passes over the training data.
        started: When the time began, by `time.monotonic`; with the call of `fit` if None.
    """

    seconds: float = math.inf
    epochs: int | None = None
    started: float | None = None

    def of(self, seconds: float) -> "Budget":
        """This budget with so much time."""
        return replace(self, seconds=seconds)

    def part(self, share: float) -> "Budget":
        """A share of the whole."""
        epochs = None if self.epochs is None else max(1, round(share * self.epochs))
        return Budget(share * self.seconds, epochs, self.started)

    def over(self, seconds: float) -> bool:
        """True if the time is used up."""
        return seconds >= self.seconds

    def stage1_over(self, seconds: float, rules: Rules) -> bool:
        """True if stage 1's part of the time is used up."""
        return seconds >= self._stage1_seconds(rules)

    def share_of_stage(self, stage: int, seconds: float, rules: Rules) -> float:
        """How much of the stage's time is gone, 0 without a limit on time."""
        if math.isinf(self.seconds):
            return 0.0
        first = self._stage1_seconds(rules)
        return seconds / first if stage == 1 else (seconds - first) / max(1e-9, self.seconds - first)

    def epochs_of_stages(self, rule_epochs: int, rules: Rules) -> tuple[int, int]:
        """The most epochs of each stage."""
        second = math.ceil(rules.stage2_share * rule_epochs)
        if self.epochs is None:
            return rule_epochs, second
        first = max(1, min(rule_epochs, math.ceil(self.epochs / (1 + rules.stage2_share))))
        return first, min(self.epochs - first, second)

    def _stage1_seconds(self, rules: Rules) -> float:
        return self.seconds / (1 + rules.stage2_share)


def parse_budget(budget: "str | int | float | Budget | None", started: float | None = None) -> Budget:
    """`60` or `"60s"`, `"5m"`, `"1h"`: time.  `"100 epochs"` or `"100e"`: passes over the data.

    >>> parse_budget("5m").seconds, parse_budget("100 epochs").epochs
    (300.0, 100)

    started: when its time began, if that was before the call of `fit`.
    """
    if budget is None:
        return Budget(started=started)
    if isinstance(budget, Budget):
        return budget
    text = f"{budget}s" if isinstance(budget, (int, float)) else str(budget).strip().lower()
    match = re.fullmatch(r"([0-9.]+(?:e-?[0-9]+)?)\s*([a-z]+)", text)
    if match:
        try:
            number, unit = float(match[1]), match[2]
        except ValueError:
            number, unit = -1.0, ""
        if number > 0 and unit in ("e", "epoch", "epochs") and number == int(number):
            return Budget(epochs=int(number), started=started)
        if number > 0 and unit in _UNITS:
            return Budget(seconds=number * _UNITS[unit], started=started)
    raise PactrainError(f"budget {budget!r} is not understood; write seconds (60), '60s', '5m', '1h' or '100 epochs'")


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
