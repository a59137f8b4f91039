"""What long work tells its callers: the library never prints."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Event:
    """One step of progress: `done` of `total` in a phase, with what was measured."""

    phase: Literal["prior", "scan", "train", "certify", "runs", "download"]
    done: int
    total: int
    values: dict[str, Any] = field(default_factory=dict)


Callback = Callable[[Event], None]


def silent(_: Event) -> None:
    """A callback that does nothing."""
