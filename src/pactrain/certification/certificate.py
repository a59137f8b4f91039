"""The frozen record of what was proved about a trained posterior.  No torch: it can be read and rechecked anywhere."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pactrain.certification.record import check_record
from pactrain.certification.statement import (
    COUNTING,
    END,
    MEAN,
    MEASURED,
    PRIOR,
    PROVEN,
    RANDOMISED,
    RANK,
    Caveat,
    Label,
    Statement,
    claim,
    shortfall,
)
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.notebook import lines_html
from pactrain.runtime.untrusted import read_json

FORMAT = 4


@dataclass(frozen=True)
class Certificate:
    """What can be said about a trained posterior, each number with its label; all certified ones hold together with 1 − delta.

    statements: the numbers.
    delta:      probability with which any certified statement may fail.
    n:          counted examples.
    loss, seed: name of the loss; seed of all draws.
    prior_source: where the initial weights come from, as the user, or `fit`, has stated.
    caveats:    reasons why labels are missing.
    notes:      other remarks.
    budget:     the part of delta of each event that may fail.
    measured:   how the risk was measured.
    hashes:     fingerprints of the data, the prior's mean and the posterior.
    versions:   what it was made with.
    digest:     fingerprint of everything else; it shows accidents, not forgery: anybody can compute it.
    """

    statements: tuple[Statement, ...]
    delta: float
    n: int
    loss: str
    seed: int
    prior_source: str = ""
    caveats: tuple[Caveat, ...] = ()
    notes: tuple[str, ...] = ()
    budget: dict[str, float] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", self._fingerprint())

    def _fingerprint(self) -> str:
        content = {k: v for k, v in asdict(self).items() if k != "digest"}
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def recheck(self) -> bool:
        """True if the record is consistent: see `problems`.  It says nothing about where the inputs come from."""
        return not self.problems()

    def problems(self) -> list[str]:
        """What is inconsistent in the record: a digest, a value, a label, a count, a δ."""
        found = []
        if self.digest != self._fingerprint():
            found.append("the record was changed after it was made: its digest does not fit")
        allowed = min((RANK[c.label] for c in self.caveats), default=RANK["certified"])
        for s in self.statements:
            found += [f"{s.quantity}, {s.bound}, {s.when}: {what}" for what in _wrong(s, self.n, allowed)]
        spent = spent_delta(self.statements)
        if not spent <= self.delta * (1 + 1e-9):
            found.append(f"its statements spend δ = {spent:.6g}, more than the {self.delta:.6g} stated")
        if not 0 < self.delta < 1:
            found.append(f"delta = {self.delta} is no probability")
        return found

    def differences(self, other: "Certificate", *, tolerance: float = 0.0) -> list[str]:
        """Fields in which `other`, the same certificate made again, differs; measured numbers may differ by `tolerance`."""
        mine, theirs = ({k: v for k, v in c.to_dict().items() if k != "digest"} for c in (self, other))
        return _differences(mine, theirs, "", tolerance)

    def best(self, quantity: str, predictor: str = RANDOMISED, *, label: Label | None = None) -> Statement | None:
        """The smallest value stated of a quantity, at the end of training."""
        found = [
            s
            for s in self.statements
            if (s.quantity, s.predictor, s.when) == (quantity, predictor, END) and label in (None, s.label)
        ]
        return min(found, key=lambda s: s.value, default=None)

    def prefers_prior(self) -> bool:
        """True if, by the training rows, the smallest 0-1 error that is claimed is that of the prior's mean network."""
        told = [
            s for s in self.statements if s.quantity == "0-1 error" and s.bound in COUNTING and s.label != "heuristic"
        ]
        return bool(told) and min(told, key=lambda s: s.value).predictor == PRIOR

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Certificate":
        """The inverse of `to_dict`."""
        if not isinstance(values, dict) or "statements" not in values:
            raise PactrainError("this is not a certificate: it has no statements; training writes certificate.json")
        if values.get("format") != FORMAT:
            raise PactrainError(
                f"certificate format {values.get('format')!r} is not known to this version (it reads format {FORMAT})"
            )
        if not values.get("digest"):
            raise PactrainError("this certificate has no digest: it was changed after it was made")
        check_record(values)
        parts = dict(values)
        parts["statements"] = tuple(Statement(**s) for s in parts["statements"])
        parts["caveats"] = tuple(Caveat(**c) for c in parts["caveats"])
        parts["notes"] = tuple(parts["notes"])
        return cls(**parts)

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read a certificate from its JSON file."""
        record = read_json(Path(path))
        try:
            return cls.from_dict(record)
        except (PactrainError, ValueError, RecursionError) as error:
            raise PactrainError(f"{path} cannot be read as a certificate: {error}") from error

    def findings(self) -> list[Statement]:
        """The best statement of each quantity and predictor at the end of training that claims something, the strongest first."""
        kinds = dict.fromkeys((s.quantity, s.predictor) for s in self.statements)
        best = [self.best(*kind, label=label) for kind in kinds for label in ("certified", "estimated")]
        told = {(s.quantity, s.predictor): s for s in reversed(best) if s is not None}
        return sorted(told.values(), key=lambda s: (-RANK[s.label], s.quantity != "0-1 error", s.predictor != MEAN))

    def __str__(self) -> str:
        """What is claimed, the strongest first, then what stands against more."""
        claims = self.claims()
        head = f"On new data, with {self.confidence}:" if claims else UNCLAIMED
        return "\n".join([head, *(f"  {claimed}" for claimed in claims), *self.silence(), *self.remarks()])

    @property
    def confidence(self) -> str:
        """The probability with which all certified statements hold, in words."""
        return f"{100 * (1 - self.delta):.4g} % confidence"

    def claims(self) -> list[str]:
        """What is claimed, the strongest first: ends of the sentence "On new data …", each with its label."""
        return [f"{claim(s)} [{s.label}]" for s in self.findings()]

    def silence(self) -> list[str]:
        """One sentence if the training rows prove nothing of something that could be proved."""
        told = self.findings()
        silent = [q for q in _silent(self.statements, told) if told or not self.caveats]
        if not silent:
            return []
        return [f"From the {self.n:,} training rows alone nothing useful can be proved about the {_listed(silent)}."]

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return lines_html(title, [line.strip() for line in lines])

    def remarks(self) -> list[str]:
        """What stands against more, in sentences: caveats and notes."""
        caveats = [f"{_TAKES[c.label]}: {c.reason}." for c in self.caveats]
        return [*caveats, *(f"Note: {note}." for note in self.notes)]


UNCLAIMED = "Nothing is claimed about this network on new data."

_TAKES: dict[Label, str] = {"heuristic": "Not certified", "estimated": "Only estimated", "certified": "Note"}


def _silent(statements: Sequence[Statement], told: Sequence[Statement]) -> list[str]:
    """Quantities of which the training examples prove nothing, with the best bound and what a constant answer has."""
    proofs = [s for s in statements if s.bound in PROVEN and s.bound in COUNTING]
    known, shown = {s.quantity for s in told if s in proofs}, []
    for quantity in dict.fromkeys(s.quantity for s in proofs if s.quantity not in known):
        best = min((s for s in proofs if s.quantity == quantity), key=lambda s: s.value)
        if best.vacuous:
            shown.append(shortfall(best))
    return shown


def _listed(parts: Sequence[str]) -> str:
    return " or the ".join(parts)


# -- consistency -------------------------------------------------------------------------------------------------------


def _wrong(s: Statement, n: int, allowed: int) -> list[str]:
    """What is inconsistent in one statement of a certificate about `n` examples; `allowed` is the best rank its caveats leave."""
    found = []
    again = s.recompute()
    if again != s.value:
        found.append(f"computed again it is {again!r}, not {s.value!r}")
    if s.label not in RANK:
        found.append(f"{s.label!r} is no label")
    elif s.label == "certified" and (s.bound not in PROVEN or s.vacuous):
        found.append("it cannot be certified" + (": it is vacuous" if s.vacuous else ""))
    elif s.bound != "test set" and RANK[s.label] > allowed:
        found.append(f"a caveat does not leave it the label {s.label}")
    if s.bound in COUNTING and s.inputs["n"] != n:
        found.append(f"it counts {s.inputs['n']} examples, the certificate {n}")
    deltas = {k: v for k, v in s.inputs.items() if k.startswith("delta")}  # of 0 and less there is no logarithm
    return found + [f"{k} = {v} is no probability" for k, v in deltas.items() if not v < 1]


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
            draws += s.inputs["delta_bound"]
    return sum(bounds.values()) + draws


def _differences(mine: Any, theirs: Any, path: str, tolerance: float) -> list[str]:
    """Where two JSON values differ, by path."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = list(dict.fromkeys([*mine, *theirs]))
        return [d for k in keys for d in _differences(mine.get(k), theirs.get(k), f"{path}.{k}".lstrip("."), tolerance)]
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = enumerate(zip(mine, theirs, strict=True))
        return [d for i, (a, b) in pairs for d in _differences(a, b, f"{path}[{i}]", tolerance)]
    measured = isinstance(mine, float) and isinstance(theirs, float) and not _given(path)
    if measured and abs(mine - theirs) <= tolerance * max(1.0, abs(mine)):
        return []
    return [] if mine == theirs and type(mine) is type(theirs) else [f"{path}: stored {mine!r}, made again {theirs!r}"]


def _given(path: str) -> bool:
    """True for numbers that follow from the settings alone, so that every machine has the same: δ and its parts."""
    return path.startswith("budget.") or path.rpartition(".")[2].startswith("delta")
