"""Errors that say what happened, where, why it matters and what to do."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, change colours or the direction of writing, or cannot be written."""


def printable(text: str) -> str:
    r"""A text that is safe to print, whatever file it comes from: control characters are shown as their codes.

    >>> printable("a name \x1b[2J")
    'a name \\x1b[2J'
    """
    return CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to put into a message about a word that is not known; empty if nothing is like it.

    >>> did_you_mean("digit", ["digits", "iris"])
    " (did you mean 'digits'?)"
    """
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


class PactrainError(Exception):
    """Anything pactrain refuses to do, with the way out in the message.

    Example:
        >>> import pactrain
        >>> try:
        ...     pactrain.Prior(per="neuron")
        ... except pactrain.PactrainError as error:
        ...     print(error)
        prior per='neuron' is not known; ...
    """


class DataError(PactrainError, ValueError):
    """The data cannot be used as given."""


class TrainingError(PactrainError):
    """Training had to stop (a loss that is not finite, for example)."""


class RunError(PactrainError):
    """A run folder cannot be read, written or resumed."""
