"""The frozen record of what was proved about a trained posterior.  No torch: it can be read and rechecked anywhere."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pactrain.certification.record import check_record, differences
from pactrain.certification.statement import (
    COUNTING,
    END,
    MEAN,
    PRIOR,
    PROVEN,
    RANDOMISED,
    RANK,
    TEST,
    Caveat,
    Label,
    Statement,
    claim,
    shortfall,
    spent_delta,
    too_little,
)
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.notebook import lines_html
from pactrain.runtime.untrusted import read_json

FORMAT = 4


@dataclass(frozen=True)
class Certificate:
    """What can be said about a trained posterior, each number with its label; all certified ones hold together with 1 − delta.

    Attributes:
        statements: The numbers.
        delta: Probability with which any certified statement may fail.
        n: Counted examples.
        loss: Name of the loss.
        seed: Seed of all draws.
        prior_source: Where the initial weights come from, as the user, or `fit`, has stated.
        caveats: Reasons why labels are missing.
        notes: Other remarks.
        budget: The part of delta of each event that may fail.
        measured: How the risk was measured.
        hashes: Fingerprints of the data, the prior's mean and the posterior.
        versions: What it was made with.
        format: Version of the record's layout; other versions are refused.
        digest: Fingerprint of everything else; it shows accidents, not forgery: anybody can compute it.

    Example:
        >>> certificate = Certificate((), delta=0.05, n=100, loss="cross_entropy", seed=0)
        >>> certificate.confidence, certificate.recheck()
        ('95 % confidence', True)
        >>> print(certificate)
        Nothing is claimed about this network on new data.
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
        """Check the record's arithmetic; it says nothing about where the inputs come from.

        Returns:
            True if there are no `problems`.
        """
        return not self.problems()

    def problems(self) -> list[str]:
        """List what is inconsistent in the record.

        Returns:
            One sentence per digest, value, label, count or δ that does not fit.
        """
        found = []
        if self.digest != self._fingerprint():
            found.append("the record was changed after it was made: its digest does not fit")
        allowed = min((RANK[c.label] for c in self.caveats), default=RANK["certified"])
        for s in self.statements:
            try:
                found += [f"{s.quantity}, {s.bound}, {s.when}: {what}" for what in _wrong(s, self.n, allowed)]
            except PactrainError as error:  # what is spent cannot be added up either
                return [*found, str(error)]
        spent = spent_delta(self.statements)
        if not spent <= self.delta * (1 + 1e-9):
            found.append(f"its statements spend δ = {spent:.6g}, more than the {self.delta:.6g} stated")
        if not 0 < self.delta < 1:
            found.append(f"delta = {self.delta} is no probability")
        return found

    def differences(self, other: "Certificate", *, tolerance: float = 0.0) -> list[str]:
        """Compare with a certificate that was made again.

        Args:
            other: The certificate made again.
            tolerance: Largest difference of measured numbers, relative where they exceed 1.

        Returns:
            The fields that differ, with both values.
        """
        mine, theirs = ({k: v for k, v in c.to_dict().items() if k != "digest"} for c in (self, other))
        return differences(mine, theirs, "", tolerance)

    def best(self, quantity: str, predictor: str = RANDOMISED, *, label: Label | None = None) -> Statement | None:
        """Find the smallest value stated of a quantity at the end of training.

        Args:
            quantity: What is bounded, such as "0-1 error".
            predictor: Whose risk it is; see `Statement`.
            label: Only statements with this label; None for all.

        Returns:
            The statement, or None if there is none.
        """
        found = [
            s
            for s in self.statements
            if (s.quantity, s.predictor, s.when) == (quantity, predictor, END) and label in (None, s.label)
        ]
        return min(found, key=lambda s: s.value, default=None)

    def prefers_prior(self) -> bool:
        """Compare the trained network with the prior's by what the training rows prove.

        Returns:
            True if the smallest 0-1 error that is claimed is that of the prior's mean network.
        """
        claimed = [
            s for s in self.statements if s.quantity == "0-1 error" and s.bound in COUNTING and s.label != "heuristic"
        ]
        return bool(claimed) and min(claimed, key=lambda s: s.value).predictor == PRIOR

    def to_dict(self) -> dict[str, Any]:
        """Turn the record into values for JSON.

        Returns:
            Plain values, by field.
        """
        return json.loads(json.dumps(asdict(self), allow_nan=False))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Certificate":
        """Read what `to_dict` has made.

        Args:
            values: Plain values, by field.

        Returns:
            The certificate; its arithmetic is checked by `recheck`.

        Raises:
            PactrainError: The values are no certificate of this format.
        """
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
        """Read a certificate from its JSON file.

        Args:
            path: The file.

        Returns:
            The certificate; its arithmetic is checked by `recheck`.

        Raises:
            PactrainError: The file cannot be read as a certificate.
        """
        record = read_json(Path(path))
        try:
            return cls.from_dict(record)
        except (PactrainError, ValueError, RecursionError) as error:
            raise PactrainError(f"{path} cannot be read as a certificate: {error}") from error

    def findings(self) -> list[Statement]:
        """Select what is claimed at the end of training.

        Returns:
            The best statement of each quantity and predictor, the strongest first.
        """
        kinds = dict.fromkeys((s.quantity, s.predictor) for s in self.statements)
        best = [self.best(*kind, label=label) for kind in kinds for label in ("certified", "estimated")]
        found = {(s.quantity, s.predictor): s for s in reversed(best) if s is not None}
        return sorted(found.values(), key=lambda s: (-RANK[s.label], s.quantity != "0-1 error", s.predictor != MEAN))

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
        """Put the findings into words.

        Returns:
            Ends of the sentence "On new data …", each with its label, the strongest first.
        """
        return [f"{claim(s)} [{s.label}]" for s in self.findings()]

    def silence(self) -> list[str]:
        """Say what could be proved in principle, but not by these rows.

        Returns:
            One sentence, or none.
        """
        findings = self.findings()
        held_out = next((s for s in self.statements if s.bound == TEST and s.vacuous), None)
        if held_out is not None and not findings:
            return [f"Held-out rows prove that {too_little(held_out)}."]
        silent = [q for q in _silent(self.statements, findings) if findings or not self.caveats]
        if not silent:
            return []
        about = f" about the {' or the '.join(silent)}" if self.from_training_rows() else ""
        return [f"From the {self.n:,} training rows alone nothing useful can be proved{about}."]

    def from_training_rows(self) -> bool:
        """Say whether anything is claimed that rests on the counted training rows.

        Returns:
            True if at least one finding does.
        """
        return any(s.bound in COUNTING for s in self.findings())

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return lines_html(title, [line.strip() for line in lines])

    def remarks(self, *, brief: bool = False) -> list[str]:
        """Put caveats and notes into words.

        Args:
            brief: Leave out caveats about statements that are not made.

        Returns:
            One sentence each.
        """
        spoken: dict[Label, bool] = {"estimated": self.from_training_rows(), "certified": bool(self.findings())}
        listed = [c for c in self.caveats if not brief or spoken.get(c.label, True)]
        caveats = [f"{_TAKES[c.label]}: {c.reason}." for c in listed]
        return [*caveats, *(f"Note: {note}." for note in self.notes)]


UNCLAIMED = "Nothing is claimed about this network on new data."

_TAKES: dict[Label, str] = {"heuristic": "Not certified", "estimated": "Only estimated", "certified": "Note"}


def _silent(statements: Sequence[Statement], findings: Sequence[Statement]) -> list[str]:
    """Quantities of which the training examples prove nothing, with the best bound and what a constant answer has."""
    proofs = [s for s in statements if s.bound in PROVEN and s.bound in COUNTING]
    known, shortfalls = {s.quantity for s in findings if s in proofs}, []
    for quantity in dict.fromkeys(s.quantity for s in proofs if s.quantity not in known):
        best = min((s for s in proofs if s.quantity == quantity), key=lambda s: s.value)
        if best.vacuous:
            shortfalls.append(shortfall(best))
    return shortfalls


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
