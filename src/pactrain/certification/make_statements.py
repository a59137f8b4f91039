"""The statements of a certificate about one posterior: what is measured, what is charged, what is claimed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from pactrain.bounds.prior_price import PricedPrior, priced_prior
from pactrain.certification.caveats import measuring_notes
from pactrain.certification.data_checks import of_a_graph
from pactrain.certification.measures import (
    CLIPPED,
    CROSS_ENTROPY,
    ERROR,
    LARGE,
    TRUNCATED,
    Key,
    smoothed,
)
from pactrain.certification.risks import Risks, measure_risks
from pactrain.certification.statement import (
    ABOVE,
    COUNTED,
    DRAWN,
    FORMULAS,
    MEAN,
    PRIOR,
    RANDOMISED,
    TEST,
    Inputs,
    Label,
    Statement,
    statement,
)
from pactrain.certification.subject import Subject
from pactrain.certification.unbounded_loss import loss_statements
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import best_constant
from pactrain.problem.scores import Scores, evaluate
from pactrain.runtime.seeds import generator

MONTE_CARLO_SHARE = 0.2
"""Part of an event's δ spent on measuring the risk by draws; the rest is the bound's."""


def about(subject: Subject, when: str) -> tuple[list[Statement], dict[str, Any], list[str]]:
    """Everything about one posterior."""
    posterior = subject.posterior
    risks = measure_risks(
        posterior,
        subject.rows.measured,
        subject.loss,
        subject.measures,
        values=subject.draws,
        seed=subject.seed,
        progress=subject.progress,
    )
    rows, of = risks.n, subject.rows.of
    if of is not None:
        risks = replace(risks, n=of)
    prior = priced_prior(posterior)
    kl = float(posterior.kl_by_group(prior.log_std).sum())
    events = [measure.event for measure in subject.measures]
    statements = [_measured_statement(subject, risks, event, prior, kl, when) for event in events]
    measured: dict[str, Any] = {"n": risks.n, "draws": subject.draws, "values": risks.values, "scheme": risks.scheme}
    measured["loss"] = risks.loss
    if of is not None:
        measured["rows"] = rows
    if CROSS_ENTROPY not in events:
        unbounded, measured["psi_interval"] = loss_statements(subject, risks, prior, kl, when)
        statements += unbounded
    if ERROR in events and of is None:
        statements.append(_drawn_statement(subject, risks.n, prior, when))
    return statements, measured, measuring_notes(statements, risks)


def _measured_statement(
    subject: Subject, risks: Risks, event: str, prior: PricedPrior, kl: float, when: str
) -> Statement:
    """The statement of an event that says the most beside the best constant answer."""
    keys = [key for key in risks.histograms if key[0] == event]
    delta = subject.budget[event]
    shared = {
        "values": risks.values,
        "delta_draws": MONTE_CARLO_SHARE * delta / subject.moments,
        "choices": len(keys),
        "kl": kl,
        "prior_nats": prior.nats,
        "n": risks.n,
        "delta_bound": (1 - MONTE_CARLO_SHARE) * delta,
    }

    def inputs_at(key: Key) -> Inputs:
        found = risks.histograms[key]
        return {"bins": found.bins, "counts": found.text, **shared, **_range(subject, key)}

    def promise(key: Key) -> float:
        """Roughly the value, in units of the constant answer's."""
        constant = _constant(subject, key)
        value = FORMULAS[_bound(key)](**inputs_at(key), exactly=True)
        return value if constant is None else value / constant if constant else math.inf

    best = min(keys, key=promise)
    return statement(
        _quantity(best),
        RANDOMISED,
        subject.label,
        _bound(best),
        inputs_at(best),
        prior=prior.name,
        when=when,
        constant_answer=_constant(subject, best),
    )


def _bound(key: Key) -> str:
    return "bernstein" if key[0] == CROSS_ENTROPY else "kl"


def _quantity(key: Key) -> str:
    event, at, _ = key
    if event == CROSS_ENTROPY:
        return f"cross-entropy smoothed by {at:g}"
    if event == LARGE:
        return f"{ABOVE}{at:g}"
    return f"squared error cut off at {at * at:g}" if event == TRUNCATED else event


def _range(subject: Subject, key: Key) -> dict[str, float]:
    """Inputs of a formula that say which values its loss can take."""
    event, at, u = key
    if event == CROSS_ENTROPY:
        return {"limit": math.log(subject.classes / at), "u": u}
    return {"scale": {TRUNCATED: at * at, CLIPPED: subject.loss.clip or 1.0}.get(event, 1.0)}


def _constant(subject: Subject, key: Key) -> float | None:
    """What the best constant answer has in a measure's quantity."""
    (event, at, _), constant = key, subject.constant
    if constant is None:
        return None
    if event == ERROR:
        return constant.error
    if event == CROSS_ENTROPY:
        return None if constant.losses is None else float(smoothed(constant.losses, at, subject.classes).mean())
    if event == CLIPPED:
        return constant.clipped(subject.loss.clip or 1.0)
    (measure,) = (m for m in subject.measures if m.event == event)
    column = measure.places.index(key[1:])
    share = constant.by_squares(lambda squares: measure(squares, squares)[:, column])
    return None if share is None else share * _range(subject, key)["scale"]


@torch.no_grad()
def _drawn_statement(subject: Subject, n: int, prior: PricedPrior, when: str) -> Statement:
    """One network drawn from the posterior: the same bound with ln dQ/dP at it instead of the KL."""
    posterior = subject.posterior
    source = generator(posterior.log_std.device, subject.seed, "one network")
    state = source.get_state()
    noise = posterior.fresh_noise(source)
    source.set_state(state)
    ratio = posterior.log_ratio(noise, prior.log_std)
    del noise  # as large as the network
    with posterior.sampled(source) as model:
        risk = 1 - evaluate(model, subject.rows.measured.ordered(), subject.loss)["accuracy"]
    inputs = {
        "risk": risk,
        "log_ratio": ratio,
        "prior_nats": prior.nats,
        "n": n,
        "delta_bound": subject.budget[DRAWN] / subject.moments,
    }
    trivial = None if subject.constant is None else subject.constant.error
    return statement(
        ERROR, DRAWN, subject.label, "disintegrated", inputs, prior=prior.name, when=when, constant_answer=trivial
    )


# -- networks chosen without the rows they are judged by ---------------------------------------------------------------


@torch.no_grad()
def counted_statements(subject: Subject) -> list[Statement]:
    """The network at the prior's mean, judged by the counted rows: they had no part in it.

    It is `MEAN` where the posterior is the prior, so that this network is the one that is delivered.
    """
    if COUNTED not in subject.budget:
        return []
    posterior = subject.posterior
    with posterior.prior_draw(posterior.prior_log_std, torch.zeros_like(posterior.prior_mean)) as model:
        scores = evaluate(model, subject.rows.counted.ordered(), subject.loss)
    who = PRIOR if bool(posterior.mean_shift().any()) else MEAN
    trivial = None if subject.constant is None else subject.constant.error
    inputs = _counted(scores, subject.budget[COUNTED])
    return [statement(ERROR, who, subject.label, COUNTED, inputs, constant_answer=trivial)]


def held_out_statements(subject: Subject, held_out: Batches, doubts: Sequence[str]) -> list[Statement]:
    """The delivered network, judged by held-out rows."""
    if TEST not in subject.budget:
        return []
    scores = evaluate(subject.posterior.model, held_out.ordered(), subject.loss)
    constant = best_constant(held_out, subject.loss, losses=False)
    several = constant is None or constant.several  # shares of wrong pixels, say, are not counted one by one
    dependent = doubts or several or of_a_graph(next(iter(held_out.ordered())))
    label: Label = "heuristic" if dependent else "certified"
    trivial = None if constant is None else constant.error
    return [statement(ERROR, MEAN, label, TEST, _counted(scores, subject.budget[TEST]), constant_answer=trivial)]


def _counted(scores: Scores, delta: float) -> Inputs:
    n = int(scores["n"])
    return {"errors": round((1 - scores["accuracy"]) * n), "n": n, "delta_bound": delta}


def heuristics(terms: Mapping[str, float]) -> list[Statement]:
    """The training objective, and the paper's bound with its correction η."""
    if not terms:
        return []
    parts = {k: terms[k] for k in ("risk", "kl_term", "complexity")}
    when = "end of stage 1"
    plain = statement("training loss", RANDOMISED, "heuristic", "training objective", parts, when=when)
    constants = {k: v for k, v in terms.items() if k not in parts}
    if not constants:
        return [plain]
    corrected = {"objective": plain.value, **constants}
    return [plain, statement("training loss", RANDOMISED, "heuristic", "training objective + η", corrected, when=when)]
