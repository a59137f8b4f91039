"""Reports of what a rule could not do, and why: collected while `fit` runs, for the notes of its result.

Rules call the user's network and loss in ways that training does not: with random inputs, with single rows, under vmap.  These may
raise anything there, which does not end the run, but is reported.  Only their own calls are guarded (`refusing`), so that an error in
our code surfaces.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from pactrain.runtime.errors import PactrainError

P = ParamSpec("P")
R = TypeVar("R")

TORCHS = RuntimeError, ValueError, Warning
"""What torch raises for an operation that a layer does not support (NotImplementedError is a RuntimeError)."""

_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


class Refused(PactrainError):
    """The user's network or loss raised `error` when a rule called it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(_reason(error))
        self.error = error


@contextmanager
def collected() -> Iterator[list[str]]:
    """The sentences of all that is given up within the block."""
    notes: list[str] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def gave_up(what: str, why: Exception | str, *, instead: str) -> None:
    """Report what was not done, the reason, and what was done instead: once, in the notes of `fit`, or else as a warning.

    >>> with collected() as notes:
    ...     gave_up("The data was not scaled", ValueError("no rows"), instead="it is trained on as it came")
    >>> notes
    ['The data was not scaled (ValueError: no rows); it is trained on as it came.']
    """
    noted(f"{what} ({why if isinstance(why, str) else _reason(why)}); {instead}.")


def noted(note: str) -> None:
    """Add a sentence to the notes of `fit`, once; elsewhere it is a warning."""
    notes = _notes.get()
    if notes is None:
        warnings.warn(note, stacklevel=3)
    elif note not in notes:
        notes.append(note)


def refusing(call: Callable[P, R]) -> Callable[P, R]:
    """The user's network or loss, of which any exception becomes `Refused`."""

    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except Refused:  # by the network, which the loss has called
            raise
        except Exception as error:  # the user's code may raise anything
            raise Refused(error) from error

    return guarded


def is_torchs(error: Exception) -> bool:
    """True if torch itself raised it, of an operation that a layer does not support: nothing that the user could change."""
    return isinstance(error.error if isinstance(error, Refused) else error, TORCHS)


def _reason(error: Exception) -> str:
    """Type and first line of an exception."""
    if isinstance(error, PactrainError):
        return str(error).partition("\n")[0]  # written for users, or a type and a first line already
    return ": ".join(part for part in (type(error).__name__, str(error).strip().partition("\n")[0]) if part)
