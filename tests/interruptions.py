"""Ways to end a run before its time, and which epochs it had by then."""

from typing import Any

from pactrain.runtime.events import Event


def interrupt_at(epoch: int, error: type[BaseException]) -> Any:
    """A callback that raises at the end of an epoch."""

    def callback(event: Event) -> None:
        if event.phase == "train" and event.done == epoch:
            raise error

    return callback


def epochs_of(events: list[Event]) -> list[int]:
    """The epochs that were trained, as the callbacks were told."""
    return [event.done for event in events if event.phase == "train"]


class Crash(Exception):
    """Stands for the power going off."""
