"""The frozen record of what was proved about a trained posterior.  No torch: it can be read and rechecked anywhere."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pactrain.bounds.eta import eta_paper
from pactrain.bounds.held_out import clopper_pearson
from pactrain.bounds.kl import kl_bound, monte_carlo
from pactrain.bounds.single_draw import disintegrated
from pactrain.errors import PactrainError

FORMAT = 2

Label = Literal["certified", "estimated", "heuristic"]

MEANING = {
    "certified": "holds with the stated confidence for independent data and a prior chosen without looking at it",
    "estimated": "would be certified if everything it rests on were known exactly",
    "heuristic": "a number to compare runs with, not a guarantee",
}

RANDOMISED, DRAWN, MEAN = "randomised predictor", "one drawn network", "mean network"


def _kl(
    mean: float, values: int, delta_draws: float, kl: float, prior_nats: float, n: int, delta_bound: float, scale: float
) -> float:
    return scale * kl_bound(monte_carlo(mean, values, delta_draws), kl + prior_nats, n, delta_bound)


def _unbounded(
    risk: float, kl: float, prior_nats: float, confidence_nats: float, n: int, gamma: float, complexity: float
) -> float:
    return risk + (kl + prior_nats + confidence_nats) / (gamma * n) + complexity


def _disintegrated(risk: float, log_ratio: float, prior_nats: float, n: int, delta_bound: float) -> float:
    return disintegrated(risk, log_ratio + prior_nats, n, delta_bound)


def _objective(risk: float, kl_term: float, complexity: float) -> float:
    return risk + kl_term + complexity


def _objective_eta(objective: float, **constants: Any) -> float:
    return objective + eta_paper(**constants)


def _test_set(errors: int, n: int, delta_bound: float) -> float:
    return clopper_pearson(errors, n, delta_bound)


FORMULAS: dict[str, Callable[..., float]] = {
    "kl": _kl,
    "unbounded (cgf)": _unbounded,
    "unbounded (paper)": _unbounded,
    "disintegrated": _disintegrated,
    "test set": _test_set,
    "training objective": _objective,
    "training objective + η": _objective_eta,
}


@dataclass(frozen=True)
class Statement:
    """One number with its label, what it speaks of, and all that is needed to compute it again."""

    quantity: str
    predictor: str
    label: Label
    bound: str
    value: float
    inputs: dict[str, float]
    prior: str = ""
    when: str = "end of training"
    vacuous_at: float | None = None

    @property
    def vacuous(self) -> bool:
        """Does the number say nothing that was not known before?"""
        return self.vacuous_at is not None and self.value >= self.vacuous_at

    def recompute(self) -> float:
        """The value, computed again from the inputs."""
        try:
            return FORMULAS[self.bound](**self.inputs)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise PactrainError(f"the {self.bound!r} statement cannot be computed again: {error}") from error


def statement(
    quantity: str,
    predictor: str,
    label: Label,
    bound: str,
    inputs: dict[str, float],
    *,
    prior: str = "",
    when: str = "end of training",
    vacuous_at: float | None = None,
) -> Statement:
    """A statement whose value is computed here by the formula named."""
    value = FORMULAS[bound](**inputs)
    return Statement(quantity, predictor, label, bound, value, inputs, prior, when, vacuous_at)


@dataclass(frozen=True)
class Certificate:
    """What can be said about a trained posterior, each number with its label; all hold together with 1 − delta."""

    statements: tuple[Statement, ...]
    delta: float
    n: int
    loss: str
    seed: int
    notes: tuple[str, ...] = ()
    budget: dict[str, float] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
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
        """Is the record as it was made, does its budget add up, and do all numbers follow, to the last digit?"""
        spent = sum(self.budget.values())
        return (
            self.digest == self._fingerprint()
            and spent <= self.delta * (1 + 1e-9)
            and all(s.recompute() == s.value for s in self.statements)
        )

    def best(self, quantity: str, predictor: str = RANDOMISED, *, label: Label | None = None) -> Statement | None:
        """The smallest value stated of a quantity, at the end of training."""
        found = [
            s
            for s in self.statements
            if (s.quantity, s.predictor, s.when) == (quantity, predictor, "end of training")
            and label in (None, s.label)
        ]
        return min(found, key=lambda s: s.value, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Certificate":
        """The inverse of `to_dict`."""
        if "statements" not in values:
            raise PactrainError("this is not a certificate: it has no statements; training writes certificate.json")
        if values.get("format") != FORMAT:
            raise PactrainError(
                f"certificate format {values.get('format')!r} is not known to this version (it reads format {FORMAT})"
            )
        if not values.get("digest"):
            raise PactrainError("this certificate has no digest: it was changed after it was made")
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
        """At most eight lines: the best number of each kind, and what stands against them."""
        shown = [s for s in (self._shown(q, p) for q, p in self._subjects()) if s is not None]
        if not shown:
            return "\n".join(["Nothing can be said about this predictor on new data.", *self.notes[:7]])
        head = f"On new data, with {100 * (1 - self.delta):.4g} % confidence from {self.n:,} training examples that the initial weights had not seen:"
        lines = [head, *(f"  {_phrase(s)}" for s in shown)]
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)][:8])

    def _subjects(self) -> list[tuple[str, str]]:
        kinds = {(s.quantity, s.predictor): None for s in self.statements if s.label != "heuristic"}
        return list(kinds)[:5]

    def _shown(self, quantity: str, predictor: str) -> Statement | None:
        return self.best(quantity, predictor, label="certified") or self.best(quantity, predictor)


def _phrase(s: Statement) -> str:
    shown = f"{100 * s.value:.1f} %" if s.quantity == "0-1 error" else f"{s.value:.3f}"
    who = {
        RANDOMISED: "The randomised predictor (weights drawn anew each time)",
        DRAWN: "One network drawn from it",
        MEAN: "The mean network, by its test set,",
    }[s.predictor]
    if s.vacuous:
        return f"{who}: no useful bound on the {s.quantity} (the value, {shown}, is vacuous) [{s.label}]"
    return f"{who} has a {s.quantity} of at most {shown} [{s.label}]"
