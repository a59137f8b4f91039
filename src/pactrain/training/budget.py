"""The user's limit on training, in time or epochs.  No torch: the command line checks it before anything is loaded."""

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pactrain.runtime.arguments import check_whole
from pactrain.runtime.errors import PactrainError

if TYPE_CHECKING:
    from pactrain.rules.rules import Rules


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

    def __post_init__(self) -> None:
        if self.epochs is not None:
            check_whole("epochs", self.epochs, 1)

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

    def stage1_over(self, seconds: float, rules: "Rules") -> bool:
        """True if stage 1's part of the time is used up."""
        return seconds >= self._stage1_seconds(rules)

    def share_of_stage(self, stage: int, seconds: float, rules: "Rules") -> float:
        """How much of the stage's time is gone, 0 without a limit on time."""
        if math.isinf(self.seconds):
            return 0.0
        first = self._stage1_seconds(rules)
        return seconds / first if stage == 1 else (seconds - first) / max(1e-9, self.seconds - first)

    def epochs_of_stages(self, rule_epochs: int, rules: "Rules") -> tuple[int, int]:
        """The most epochs of each stage."""
        second = math.ceil(rules.stage2_share * rule_epochs)
        if self.epochs is None:
            return rule_epochs, second
        first = max(1, min(rule_epochs, math.ceil(self.epochs / (1 + rules.stage2_share))))
        return first, min(self.epochs - first, second)

    def _stage1_seconds(self, rules: "Rules") -> float:
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
        if math.isinf(number):
            number = -1.0
        if number > 0 and unit in ("e", "epoch", "epochs") and number == int(number):
            return Budget(epochs=int(number), started=started)
        if number > 0 and unit in _UNITS:
            return Budget(seconds=number * _UNITS[unit], started=started)
    raise PactrainError(f"budget {budget!r} is not understood; write seconds (60), '60s', '5m', '1h' or '100 epochs'")
