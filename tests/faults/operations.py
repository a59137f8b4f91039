"""The file operations of a run below one folder, of which the n-th fails, or is the last one before the process is killed.

Python's audit events tell before a file is opened, made, moved or removed; `os.fsync` has none and is wrapped.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WATCHED = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "sqlite3.connect", "os.fsync"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
KILLED = 137
SECONDS = 600

Fault = int | None
"""An errno to fail with; None to be killed."""


class Watch:
    """Counts operations below a folder, and lets one of them fail."""

    def __init__(self) -> None:
        self.below: str | None = None
        self.seen: list[str] = []
        self.at, self.fault = -1, 0  # type: int, Fault
        self.active = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take one audit event."""
        if not self.active or event not in WATCHED or not self._ours(event, arguments):
            return
        self.seen.append(event)
        if len(self.seen) - 1 == self.at:
            if self.fault is None:
                os._exit(KILLED)
            raise OSError(self.fault, os.strerror(self.fault), str(arguments[0]))

    def _ours(self, event: str, arguments: tuple[Any, ...]) -> bool:
        path = arguments[0]
        if event == "os.fsync":
            return True
        if not isinstance(path, str | bytes | os.PathLike) or self.below is None:
            return False
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
            return False
        return os.fsdecode(path).startswith(self.below)

    @contextmanager
    def on(self, folder: Path, *, at: int = -1, fault: Fault = 0) -> Iterator[list[str]]:
        """Watch a folder in the block; operation `at` fails, or is the last one."""
        self.below, self.at, self.fault, self.seen, self.active = str(folder), at, fault, [], True
        try:
            yield self.seen
        finally:
            self.active = False


WATCH = Watch()
sys.addaudithook(WATCH)
_fsync = os.fsync


def fsync(handle: int) -> None:
    """`os.fsync` with an event of its own."""
    WATCH("os.fsync", (handle,))
    _fsync(handle)


def in_child(action: Callable[[], str | None]) -> tuple[int, str]:
    """Carry something out in a process of its own; its exit code, and what it returned, or the error that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)  # a process that hangs is ended by it
        text, code = "", 0
        try:
            text = action() or ""
        except BaseException as error:
            text, code = f"{type(error).__name__}: {error}", 1
        os.write(writing, text.encode()[:60_000])
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said
