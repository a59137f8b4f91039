"""Errors that say what happened, where, why it matters and what to do."""


class PactrainError(Exception):
    """Anything pactrain refuses to do, with the way out in the message."""


class DataError(PactrainError, ValueError):
    """The data cannot be used as given."""


class TrainingError(PactrainError):
    """Training had to stop (a loss that is not finite, for example)."""


class RunError(PactrainError):
    """A run folder cannot be read, written or resumed."""
