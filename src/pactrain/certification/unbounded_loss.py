"""The unbounded loss: a bound with the moment ψ of the loss under the prior, which can only be estimated."""

import math

import numpy as np
from torch import Tensor

from pactrain.bounds.moment import Array, log_grid
from pactrain.bounds.prior_price import PricedPrior
from pactrain.certification.risks import Risks
from pactrain.certification.statement import RANDOMISED, RANK, Label, Statement, statement
from pactrain.certification.subject import Subject
from pactrain.scan.estimate import moment_at

GAMMA_GRID = log_grid(0.5, 2000.0, 40)
"""γ from which the best is taken, at the cost of ln 40."""

PSI_DRAWS, PSI_EXAMPLES, PSI_FEWEST = 20, 2000, 100
"""Draws of the prior from which ψ is estimated, examples that it is estimated on, and the fewest that show a loss's spread."""


def loss_statements(
    subject: Subject, risks: Risks, prior: PricedPrior, kl: float, when: str
) -> tuple[list[Statement], list[float]]:
    """The unbounded loss in its two forms, at the best γ of the grid; and an interval for ψ at the γ of the first."""
    name = subject.loss.title
    psi, low, high = _psi(subject, prior.log_std, risks.n)
    k = float((psi / GAMMA_GRID**2).max())
    trivial = None if subject.constant is None else subject.constant.loss
    seen = kl <= math.log(PSI_DRAWS) and risks.n >= PSI_FEWEST  # else the draws cannot see what the bound is about
    label: Label = "estimated" if seen and RANK[subject.label] >= RANK["estimated"] else "heuristic"

    def at(form: str, gamma: float, complexity: float) -> Statement:
        inputs = {
            "risk": risks.loss,
            "kl": kl,
            "prior_nats": prior.nats + math.log(len(GAMMA_GRID)),
            "confidence_nats": math.log(1 / subject.delta),
            "n": risks.n,
            "gamma": gamma,
            "complexity": complexity,
        }
        bound = f"unbounded ({form})"
        return statement(name, RANDOMISED, label, bound, inputs, prior=prior.name, when=when, constant_answer=trivial)

    pairs = list(zip(GAMMA_GRID.tolist(), psi.tolist(), strict=True))
    cgf = min((at("cgf", g, p / g) for g, p in pairs), key=lambda s: s.value)
    paper = min((at("paper", g, g * k) for g, _ in pairs), key=lambda s: s.value)
    index = GAMMA_GRID.tolist().index(cgf.inputs["gamma"])
    return [cgf, paper], [float(low[index]), float(high[index])]


def _psi(subject: Subject, prior_log_std: Tensor, n: int) -> tuple[Array, Array, Array]:
    """ψ_mfold at the prior's own vector of stds for every γ, between a lower and an upper end.

    The ends are the mean over draws less two standard errors, and the largest draw plus two of its own.
    """
    subset = subject.rows.measured.subset(PSI_EXAMPLES, subject.seed)
    table, errors = moment_at(
        subject.posterior, subset, subject.loss, prior_log_std, GAMMA_GRID, draws=PSI_DRAWS, seed=subject.seed
    )
    with np.errstate(invalid="ignore"):  # of losses that are not finite there is no statement
        psi = _mfold(table, n)
        spread = table.std(axis=0) / math.sqrt(len(table))
        return psi, table.mean(axis=0) - 2 * spread, table.max(axis=0) + 2 * errors.max(axis=0)


def _mfold(table: Array, n: int) -> Array:
    averaged = (np.logaddexp.reduce(n * table, axis=0) - math.log(len(table))) / n
    return np.asarray(np.maximum(averaged, 0.0), dtype=np.float64)
