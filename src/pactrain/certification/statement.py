"""One number of a certificate: its formula, its label, what it says.  No torch: it can be computed again anywhere."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from pactrain.bounds.eta import eta_paper
from pactrain.bounds.held_out import clopper_pearson
from pactrain.bounds.kl import kl_bound, monte_carlo
from pactrain.bounds.single_draw import disintegrated
from pactrain.runtime.errors import PactrainError

Label = Literal["certified", "estimated", "heuristic"]

MEANING: dict[Label, str] = {
    "certified": "holds with the stated confidence for independent examples and a prior chosen without looking at them",
    "estimated": "would be certified if what was estimated from the same examples were known exactly",
    "heuristic": "a number for comparing runs; nothing is claimed",
}

RANK: dict[Label, int] = {label: rank for rank, label in enumerate(reversed(MEANING))}
"""The better the label, the higher."""

RANDOMISED, DRAWN, MEAN = "randomised predictor", "one drawn network", "mean network"

END = "end of training"

PROVEN = ("kl", "disintegrated", "test set")
"""Bounds whose statements may be certified: the others rest on quantities that can only be estimated."""

COUNTING = ("kl", "disintegrated", "unbounded (cgf)", "unbounded (paper)")
"""Bounds about the counted training examples."""


def _kl(
    mean: float, values: int, delta_draws: float, kl: float, prior_nats: float, n: int, delta_bound: float, scale: float
) -> float:
    bound = kl_bound(monte_carlo(mean, values, delta_draws), kl + prior_nats, n, delta_bound)
    return bound if scale == 1 else math.nextafter(scale * bound, math.inf)  # the product may have been rounded down


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
class Caveat:
    """A reason why statements about the training examples carry no better label than `label`.

    reason: what is the matter, and what to do about it.
    label:  the best label that remains; "certified" makes it a remark that takes nothing away.
    """

    reason: str
    label: Label = "heuristic"


@dataclass(frozen=True)
class Statement:
    """One number with its label, the predictor it covers, and all that is needed to compute it again.

    quantity:        what is bounded ("0-1 error", "clipped loss", …).
    predictor:       `RANDOMISED`, `DRAWN` or `MEAN`.
    label:           "certified", "estimated" or "heuristic"; a vacuous statement is always heuristic.
    bound:           the formula, a key of `FORMULAS`.
    value:           the bound.
    inputs:          the arguments of the formula.
    prior:           how a learned prior was paid for.
    when:            the moment of training that it is about.
    constant_answer: what the best constant answer has on the same rows; None where that is not known.
    """

    quantity: str
    predictor: str
    label: Label
    bound: str
    value: float
    inputs: dict[str, float]
    prior: str = ""
    when: str = END
    constant_answer: float | None = None

    @property
    def vacuous(self) -> bool:
        """True if the value is no better than the best constant answer."""
        return self.constant_answer is not None and self.value >= self.constant_answer

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
    when: str = END,
    constant_answer: float | None = None,
) -> Statement:
    """A statement whose value is computed here by the formula named; heuristic if it turns out to be vacuous."""
    value = FORMULAS[bound](**inputs)
    made = Statement(quantity, predictor, label, bound, value, inputs, prior, when, constant_answer)
    return replace(made, label="heuristic") if made.vacuous else made


WHO = {
    RANDOMISED: "the randomised predictor, whose weights are drawn anew for each prediction,",
    DRAWN: "one network drawn from the posterior",
    MEAN: "the trained network itself",
}


def claim(s: Statement) -> str:
    """What a statement says, as the end of the sentence "On new data …"."""
    who, source = WHO[s.predictor], " (from held-out rows)" if s.bound == "test set" else ""
    if s.quantity == "0-1 error":
        return f"{who} is wrong in at most {100 * s.value:.1f} % of the cases{source}"
    return f"{who} has a {s.quantity} of at most {s.value:.3f}{source}"
