"""Progress events, which long work passes to callbacks: the library never prints."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Event:
    """One step of progress.

    Attributes:
        phase: "prior" (training of the prior with `prior_data`), "scan" (the prior is measured), "train", "block" (a progressive
            certificate has judged the network by a block of rows), "certify" (the risk is measured), "report" (the page is
            written), "runs" (a plan of several runs) or "download".
        done: Steps of the phase that are done: epochs, networks, blocks, draws, runs or bytes.
        total: Steps that the phase is expected to take.
        values: What was measured; in "train" and "prior" the record of the epoch, as in `result.history`.

    Example:
        >>> Event("train", done=3, total=30, values={"risk": 0.5}).done
        3
    """

    phase: Literal["prior", "scan", "train", "block", "certify", "report", "runs", "download"]
    done: int
    total: int
    values: dict[str, Any] = field(default_factory=dict)
    _wishes: list[bool] = field(default_factory=list, compare=False, repr=False)

    def stop(self) -> None:
        """End the training at its next step; what it has reached is certified. Outside the phase "train" nothing happens."""
        self._wishes.append(True)

    @property
    def stopped(self) -> bool:
        """True if a callback has called `stop`."""
        return bool(self._wishes)


Callback = Callable[[Event], None]


def silent(_: Event) -> None:
    """A callback that does nothing."""
