"""The frozen record of what was proved about a trained posterior.  No torch: it can be read and rechecked anywhere."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pactrain.bounds.kl import kl_bound, monte_carlo
from pactrain.errors import PactrainError

FORMAT = 1

Label = Literal["certified", "estimated", "heuristic"]

MEANING = {
    "certified": "holds with the stated confidence for independent data and a prior chosen without looking at it",
    "estimated": "would be certified if everything it rests on were known exactly",
    "heuristic": "a number to compare runs with, not a guarantee",
}


def _kl_monte_carlo(
    mean: float, draws: int, delta_draws: float, kl: float, prior_nats: float, n: int, delta_bound: float
) -> float:
    return kl_bound(monte_carlo(mean, draws, delta_draws), kl + prior_nats, n, delta_bound)


def _unbounded(
    risk: float, kl: float, prior_nats: float, confidence_nats: float, n: int, gamma: float, complexity: float
) -> float:
    return risk + (kl + prior_nats + confidence_nats) / (gamma * n) + complexity


FORMULAS: dict[str, Callable[..., float]] = {"kl": _kl_monte_carlo, "unbounded": _unbounded}


@dataclass(frozen=True)
class Statement:
    """One number with its label, what it speaks of, and all that is needed to compute it again."""

    quantity: str
    predictor: str
    label: Label
    bound: str
    value: float
    vacuous: bool
    inputs: dict[str, float]

    def recompute(self) -> float:
        """The value, computed again from the inputs."""
        return FORMULAS[self.bound](**self.inputs)


@dataclass(frozen=True)
class Certificate:
    """What can be said about a randomised predictor, each number with its label."""

    statements: tuple[Statement, ...]
    delta: float
    n: int
    loss: str
    draws: int
    seed: int
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    digest: str = ""
    """Fingerprint of everything else in the record, so that an edited certificate is seen to be edited."""

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", self._fingerprint())

    def _fingerprint(self) -> str:
        content = {k: v for k, v in asdict(self).items() if k != "digest"}
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def recheck(self) -> bool:
        """Is the record as it was made, and do all numbers follow, to the last digit, from their inputs?"""
        return self.digest == self._fingerprint() and all(s.recompute() == s.value for s in self.statements)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Certificate":
        """The inverse of `to_dict`."""
        if values.get("format") != FORMAT:
            raise PactrainError(
                f"certificate format {values.get('format')!r} is not known to this version (it reads format {FORMAT})"
            )
        try:
            parts = dict(values)
            parts["statements"] = tuple(Statement(**s) for s in parts["statements"])
            parts["notes"] = tuple(parts["notes"])
            return cls(**parts)
        except (TypeError, KeyError) as error:
            raise PactrainError(f"this is not a certificate: {error}") from error

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read a certificate from its JSON file."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text()))
        except (OSError, ValueError, AttributeError) as error:
            raise PactrainError(f"{path} cannot be read as a certificate: {error}") from error

    def __str__(self) -> str:
        if not self.statements:
            return "Nothing could be said about this predictor. " + " ".join(self.notes)
        lines = [
            f"With {1 - self.delta:.4g} confidence, from {self.n:,} examples, the randomised predictor "
            "(weights drawn anew for each prediction) has"
        ]
        lines += [f"  {_phrase(s)}" for s in self.statements]
        lines += [f"Note: {note}" for note in self.notes[:4]]
        return "\n".join(lines)


def _phrase(s: Statement) -> str:
    shown = f"{100 * s.value:.1f} %" if s.quantity == "0-1 error" else f"{s.value:.3f}"
    if s.vacuous:
        return f"no useful bound on its {s.quantity}: the value, {shown}, is vacuous [{s.label}]"
    return f"a {s.quantity} of at most {shown} on new data [{s.label}]"


def statement(
    quantity: str, label: Label, bound: str, inputs: dict[str, float], *, vacuous_at: float = math.inf
) -> Statement:
    """A statement about the randomised predictor; its value is computed here by the formula named."""
    value = FORMULAS[bound](**inputs)
    return Statement(quantity, "randomised predictor", label, bound, value, value >= vacuous_at, inputs)
