"""One number of a certificate: its formula, its label, what it says.  No torch: it can be computed again anywhere."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from pactrain.bounds.bernstein import bernstein_bound
from pactrain.bounds.betting import Histogram, risk_bound
from pactrain.bounds.eta import eta_paper
from pactrain.bounds.held_out import clopper_pearson
from pactrain.bounds.kl import kl_bound
from pactrain.bounds.progressive import progressive_bound, read_blocks
from pactrain.bounds.recursive import read_levels, recursive_bound
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

RANDOMISED, DRAWN, MEAN, PRIOR = "randomised predictor", "one drawn network", "mean network", "prior's mean network"

SEQUENCE = "one of the networks on the way"
"""The networks that were judged block by block, each with a probability in proportion to its block."""

COUNTED, TEST, PROGRESSIVE, RECURSIVE = "counted rows", "test set", "progressive", "recursive"
"""Bounds that are events of a certificate's budget by the same names; the first two count errors of a network on rows that it was not
trained on."""

END = "end of training"

ABOVE = "share of errors above "
"""Beginning of a quantity in regression; the size of the errors follows."""

PROVEN = ("kl", "bernstein", "disintegrated", COUNTED, TEST, PROGRESSIVE, RECURSIVE)
"""Bounds whose statements may be certified: the others rest on quantities that can only be estimated."""

COUNTING = (*(bound for bound in PROVEN if bound != TEST), "unbounded (cgf)", "unbounded (paper)")
"""Bounds about the counted training examples."""

MEASURED = ("kl", "bernstein")
"""Bounds of a risk that was measured with draws."""

Inputs = dict[str, Any]
"""Numbers, and histograms, blocks and levels as text."""


def _measured(
    formula: Callable[..., float],
    *,
    bins: int,
    counts: str,
    values: float,
    delta_draws: float,
    choices: int,
    kl: float,
    prior_nats: float,
    n: int,
    delta_bound: float,
    exactly: bool = False,
    **more: float,
) -> float:
    """A bound of a risk that was measured, the best of `choices`; `exactly` leaves out the price of measuring it."""
    found = Histogram.read(bins, counts)
    mean = min(1.0, found.mean * found.number / values)
    risk = mean if exactly else risk_bound(bins, counts, values, delta_draws / choices)
    return formula(risk, kl + prior_nats, n, delta_bound / choices, **more)


def _kl(risk: float, nats: float, n: int, delta: float, *, scale: float) -> float:
    bound = kl_bound(risk, nats, n, delta)
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


def _progressive(blocks: str, n: int, delta_bound: float) -> float:
    found = read_blocks(blocks)
    if sum(rows for rows, _ in found[1:]) != n:
        raise ValueError(f"the blocks {blocks} do not count {n} examples")
    return progressive_bound(found, delta_bound)


def _recursive(levels: str, parts: int, n: int, delta_draws: float, delta_bound: float) -> float:
    found = read_levels(levels)
    if found[0].n != n or any(b.n >= a.n for a, b in pairwise(found)):
        raise ValueError(f"the levels {levels} do not count fewer and fewer of {n} examples")
    return recursive_bound(found, parts, delta_draws, delta_bound)


FORMULAS: dict[str, Callable[..., float]] = {
    "kl": partial(_measured, _kl),
    "bernstein": partial(_measured, bernstein_bound),
    "unbounded (cgf)": _unbounded,
    "unbounded (paper)": _unbounded,
    "disintegrated": _disintegrated,
    COUNTED: _test_set,
    TEST: _test_set,
    PROGRESSIVE: _progressive,
    RECURSIVE: _recursive,
    "training objective": _objective,
    "training objective + η": _objective_eta,
}


@dataclass(frozen=True)
class Caveat:
    """A reason why statements about the training examples carry no better label than `label`.

    Attributes:
        reason: What is the matter, and what to do about it.
        label: The best label that remains; "certified" makes it a remark that takes nothing away.
    """

    reason: str
    label: Label = "heuristic"

    @classmethod
    def of(cls, reason: "str | Caveat") -> "Caveat":
        """A reason in words as a caveat; a caveat as it is."""
        return reason if isinstance(reason, cls) else cls(str(reason))


def best_label(caveats: Iterable[Caveat]) -> Label:
    """The best label that caveats leave to statements about the training examples."""
    return min((c.label for c in caveats), key=RANK.__getitem__, default="certified")


@dataclass(frozen=True)
class Statement:
    """One number with its label, the predictor it covers, and all that is needed to compute it again.

    Attributes:
        quantity: What is bounded ("0-1 error", "clipped loss", …).
        predictor: `RANDOMISED`, `DRAWN`, `MEAN`, `PRIOR` or `SEQUENCE`.
        label: "certified", "estimated" or "heuristic"; a vacuous statement is always heuristic.
        bound: The formula, a key of `FORMULAS`.
        value: The bound.
        inputs: The arguments of the formula.
        prior: How a learned prior was paid for.
        when: The moment of training that it is about.
        constant_answer: What the best constant answer has on the same rows; None where that is not known.

    Example:
        >>> inputs = {"errors": 3, "n": 100, "delta_bound": 0.05}
        >>> Statement("0-1 error", MEAN, "certified", "test set", 0.08, inputs).recompute() < 0.08
        True
    """

    quantity: str
    predictor: str
    label: Label
    bound: str
    value: float
    inputs: Inputs
    prior: str = ""
    when: str = END
    constant_answer: float | None = None

    @property
    def vacuous(self) -> bool:
        """True if the value is no better than the best constant answer."""
        return self.constant_answer is not None and self.value >= self.constant_answer

    @property
    def mark(self) -> str:
        """The label, and whether the statement is vacuous, as a table shows it."""
        return f"{self.label}, vacuous" if self.vacuous else self.label

    def recompute(self) -> float:
        """Compute the value again from the inputs.

        Returns:
            The value, which a consistent record has bit for bit.

        Raises:
            PactrainError: The inputs do not fit the formula.
        """
        try:
            return FORMULAS[self.bound](**self.inputs)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise PactrainError(f"the {self.bound!r} statement cannot be computed again: {error}") from error


def statement(
    quantity: str,
    predictor: str,
    label: Label,
    bound: str,
    inputs: Inputs,
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
    PRIOR: "the network as it was before the counted rows were seen",
    SEQUENCE: "a network picked at random from those on the way to this one",
}

SOURCE = {
    TEST: " (from held-out rows)",
    COUNTED: " (from rows that it was not trained on)",
    PROGRESSIVE: " (each was judged by a block of rows before it was trained on it; the delivered network is the next one, trained on all)",
}


def claim(s: Statement) -> str:
    """What a statement says, as the end of the sentence "On new data …"."""
    who, source = WHO[s.predictor], SOURCE.get(s.bound, "")
    if s.quantity == "0-1 error":
        return f"{who} is right in at least {at_least(1 - s.value)} of the cases{source}"
    if s.quantity.startswith(ABOVE):
        return (
            f"{who} misses by at most {s.quantity.removeprefix(ABOVE)} in at least {at_least(1 - s.value)} of the cases"
        )
    return f"{who} has a {s.quantity} of at most {s.value:.3f}{source}"


def at_least(share: float) -> str:
    """A share that is proved, in percent, never rounded up."""
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f}\N{NO-BREAK SPACE}%"


def shortfall(s: Statement) -> str:
    """What a vacuous statement fails to bound, as the end of the sentence "Nothing useful follows about the …"."""
    return f"{s.quantity} (bound {s.value:.3g}; a constant answer has {s.constant_answer:.3g})"


def too_little(s: Statement) -> str:
    """What a vacuous statement from held-out rows does prove, as the end of the sentence "Held-out rows prove that …"."""
    if s.quantity != "0-1 error" or s.constant_answer is None:
        return f"its {s.quantity} is at most {s.value:.3g}, which a constant answer reaches as well"
    return (
        f"it is right in at least {at_least(1 - s.value)} of the cases, which is too little to be of use: always naming the "
        f"largest class is right in {at_least(1 - s.constant_answer)}"
    )


def spent_delta(statements: Sequence[Statement]) -> float:
    """The probability that any of the statements fails, as far as their own inputs say.

    Statements about several moments of training share one event of a bound for all posteriors; measuring and drawing are paid for at
    each moment.  What is only estimated spends nothing.
    """
    bounds: dict[tuple[str, ...], float] = {}
    draws = 0.0
    for s in statements:
        if s.bound in MEASURED:
            kind = re.sub(
                r" [-+.e\d]+$", "", s.quantity
            )  # without the smoothing or the threshold, which is one of `choices`
            event, spent = (s.bound, kind, s.predictor, s.prior), s.inputs["delta_bound"]
            bounds[event] = max(bounds.get(event, spent), spent)
            draws += s.inputs["delta_draws"]
        elif s.bound in PROVEN:
            draws += s.inputs["delta_bound"] + s.inputs.get("delta_draws", 0.0)
    return sum(bounds.values()) + draws
