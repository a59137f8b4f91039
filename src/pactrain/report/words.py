"""What a run amounts to, in sentences."""

import math
from dataclasses import dataclass, replace

from pactrain.certification.certificate import Certificate
from pactrain.certification.statement import MEAN, WHO, Statement, claim
from pactrain.report.read import Run

HOW = {
    "kl": "from the training data, by inverting the binary kl divergence",
    "unbounded (cgf)": "from the training data, with the moment ψ(γ) of the loss estimated under the prior",
    "unbounded (paper)": "from the training data, with the moment K̃ of the loss estimated under the prior",
    "disintegrated": "from the training data, for one draw",
    "test set": "from the held-out test rows, by Clopper and Pearson's interval",
    "training objective": "the value that training reached",
    "training objective + η": "the paper's bound with its correction for a learned prior",
}


@dataclass(frozen=True)
class Finding:
    """One statement of a certificate as a sentence, and where it comes from."""

    sentence: str
    label: str
    how: str


def shown(value: float) -> str:
    """A number as people read it: three digits that count, no exponent where it can be avoided."""
    if not math.isfinite(value):
        return "not finite"
    if value == 0 or 0.001 <= abs(value) < 10:
        return f"{value:.3g}"
    return (
        f"{value:,.4g}" if 10 <= abs(value) < 10_000 else f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.2e}"
    )


def measure(score: str, value: float) -> float:
    """A score in the unit it is shown in: accuracy in percent."""
    return 100 * value if score == "accuracy" else value


def score_text(score: str, value: float | None) -> str:
    """A score with its unit."""
    if value is None:
        return "–"
    return f"{100 * value:.2f}\N{NO-BREAK SPACE}%" if score == "accuracy" else shown(value)


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def value_of(statement: Statement) -> str:
    """The number of a statement with its unit."""
    error = statement.quantity == "0-1 error"
    return f"{100 * statement.value:.1f}\N{NO-BREAK SPACE}%" if error else shown(statement.value)


def finding(s: Statement) -> Finding:
    """A statement as a sentence."""
    what = "share of errors" if s.quantity == "0-1 error" else s.quantity
    sentence = f"On new data {claim(s)}."
    if s.vacuous:
        sentence = (
            f"Nothing useful about the {what} of {WHO[s.predictor].rstrip(',')}: the bound, {value_of(s)}, is no better "
            f"than a constant answer's {value_of(replace(s, value=s.constant_answer or 0.0))}."
        )
    return Finding(sentence, s.label, HOW.get(s.bound, s.bound))


def findings(certificate: Certificate) -> list[Statement]:
    """What the certificate claims, the strongest first, then the best of what is vacuous."""
    told = certificate.findings()
    known = {(s.quantity, s.predictor) for s in told}
    kinds = dict.fromkeys((s.quantity, s.predictor) for s in certificate.statements if s.vacuous)
    silent = [certificate.best(*kind) for kind in kinds if kind not in known]
    return [*told, *(s for s in silent if s is not None)]


def headline(run: Run) -> Statement | None:
    """The statement that matters most: certified before estimated, errors before losses, the smallest value."""
    told = run.certificate.findings() if run.certificate and run.genuine else []
    return min(told, key=lambda s: (s.label != "certified", s.quantity != "0-1 error", s.value), default=None)


def proved(run: Run) -> str:
    """What was proved, in one or two sentences."""
    certificate = run.certificate
    if certificate is None:
        return "The run has not come to its end, so nothing is stated about new data yet."
    if not run.genuine:
        return "The certificate was changed after it was made: what it says does not count."
    best, confidence = headline(run), f"{100 * (1 - certificate.delta):.4g} %"
    if best is None:
        return "Nothing is claimed about new data: no bound is better than a constant answer and free of caveats."
    if best.label != "certified":
        return f"Nothing is proved here. Estimated, at {confidence} confidence: on new data {claim(best)}."
    if best.predictor != MEAN:
        return f"Proved with {confidence} confidence, from {certificate.n:,} training examples alone: on new data {claim(best)}."
    return f"Proved with {confidence} confidence, by the held-out test rows: on new data {claim(best)}. {_alone(certificate)}"


def _alone(certificate: Certificate) -> str:
    """What follows without the test set."""
    told = [
        s
        for s in certificate.findings()
        if s.predictor != MEAN and s.quantity == "0-1 error" and s.label == "certified"
    ]
    if not told:
        return "The training data alone proves nothing useful about errors here."
    return f"The training data alone proves that {claim(min(told, key=lambda s: s.value))}."


def trained(run: Run) -> str:
    """What was trained, in one sentence."""
    time = f" in {duration(run.metrics['seconds'])}" if "seconds" in run.metrics else ""
    stages = f"{run.stage1_epochs} epochs"
    if later := len(run.history) - run.stage1_epochs:
        stages = f"{run.stage1_epochs} + {later} epochs in two stages"
    part = run.config.get("prior_data")
    prior = f", with a prior from the other {100 * part:.4g} % of the data" if part else ""
    return (
        f"{run.model} with {run.weights:,} weights, trained on {run.config.get('n', 0):,} examples of {run.data}{prior}: "
        f"{stages}{time}, seed {run.config.get('seed')}."
    )
