"""Handling of Ctrl-C: in training the first stops after the present step, the second at once; some work is never cut short."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Inside the block the first Ctrl-C only sets a flag, which the function yielded tells."""
    pressed = False

    def ask(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def uninterrupted(action: Callable[[], None]) -> None:
    """Do something to its end, even if Ctrl-C is pressed meanwhile; the interrupt comes afterwards."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            action()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
