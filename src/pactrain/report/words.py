"""Sentences that only the report uses; those it shares with the terminal are in `runs/sentences.py`."""

from dataclasses import dataclass

from pactrain.certification.certificate import UNCLAIMED, Certificate
from pactrain.certification.statement import MEANING, PROGRESSIVE, RECURSIVE, Statement, at_least, claim
from pactrain.report.read import Run
from pactrain.runs.sentences import number

HOW = {
    "kl": "from the training data, by inverting the binary kl divergence",
    "bernstein": "from the training data, by the unexpected Bernstein inequality",
    "counted rows": "from the training rows that it was not trained on, by Clopper and Pearson's interval",
    "unbounded (cgf)": "from the training data, with the moment ψ(γ) of the loss estimated under the prior",
    "unbounded (paper)": "from the training data, with the moment K̃ of the loss estimated under the prior",
    "disintegrated": "from the training data, for one draw",
    PROGRESSIVE: "from the training rows, each judged before the network was trained on it",
    RECURSIVE: "from the training rows, part by part: what one part has taught is the prior of the next",
    "test set": "from the held-out test rows, by Clopper and Pearson's interval",
    "training objective": "the value that training reached",
    "training objective + η": "the paper's bound with its correction for a learned prior",
}


@dataclass(frozen=True)
class Finding:
    """One statement of a certificate as a sentence, its label, and where it comes from; also what the label means, unless it is certified."""

    sentence: str
    label: str
    how: str


def sentence(text: str) -> str:
    """A remark as a sentence: a capital letter first, one full stop at its end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def measure(score: str, value: float) -> float:
    """A score in the unit it is shown in: accuracy in percent."""
    return 100 * value if score == "accuracy" else value


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 60:
        return f"{seconds:.1f}\N{NO-BREAK SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def value_of(statement: Statement) -> str:
    """The number of a statement with its unit."""
    error = statement.quantity == "0-1 error"
    return f"{100 * statement.value:.1f}\N{NO-BREAK SPACE}%" if error else number(statement.value)


def promised(s: Statement) -> str:
    """What a statement comes to on new data, in a few words."""
    if s.quantity == "0-1 error":
        return f"≥ {at_least(1 - s.value)} right"
    return f"{s.quantity} ≤ {value_of(s)}"


def finding(s: Statement) -> Finding:
    """A statement as a sentence."""
    how = sentence(HOW.get(s.bound, s.bound))
    return Finding(
        f"On new data {claim(s)}.", s.label, how if s.label == "certified" else f"{how} {sentence(MEANING[s.label])}"
    )


def headline(run: Run) -> Statement | None:
    """The statement that matters most: certified before estimated, errors before losses, the smallest value."""
    found = run.certificate.findings() if run.certificate and run.genuine else []
    return min(found, key=lambda s: (s.label != "certified", s.quantity != "0-1 error", s.value), default=None)


def proved(run: Run) -> str:
    """What was proved, in one or two sentences."""
    certificate = run.certificate
    if certificate is None:
        return "The run has not come to its end, so nothing is stated about new data yet."
    if not run.genuine:
        return "The certificate was changed after it was made: what it says does not count."
    best, sure = headline(run), certificate.confidence
    if best is None:
        return " ".join([UNCLAIMED, *certificate.silence()])
    if best.label != "certified":
        return f"Nothing is proved here. Estimated, at {sure}: on new data {claim(best)}."
    if best.bound != "test set":
        return f"Proved with {sure}, from {certificate.n:,} training examples alone: on new data {claim(best)}."
    return f"Proved with {sure}: on new data {claim(best)}. {_alone(certificate)}"


def _alone(certificate: Certificate) -> str:
    """What follows without the test set."""
    found = [
        s
        for s in certificate.findings()
        if s.bound != "test set" and s.quantity == "0-1 error" and s.label == "certified"
    ]
    if not found:
        return " ".join(certificate.silence())
    return f"The training data alone proves that {claim(min(found, key=lambda s: s.value))}."


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
