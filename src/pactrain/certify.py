"""Evaluation at the end: all that can be said about a trained posterior, in one record.

One δ is the whole budget.  It is shared out evenly among the events that may fail: the kl bound with each way of paying for
the learned prior, for the 0-1 error and for the clipped loss; the bound for the unbounded loss; the one drawn network; the
test set.  The bounds hold for all posteriors at once, so that the end of stage 1 costs nothing more but its own measuring.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pactrain.audit import data_caveats, digest_data, digest_tensors, of_a_graph, shared_rows
from pactrain.batches import Batches, as_batches, check_columns
from pactrain.caveats import PSI_DRAWS, dropout_note, leaks, measuring_notes, model_caveats
from pactrain.certificate import DRAWN, MEAN, RANDOMISED, Certificate, Label, Statement, statement
from pactrain.errors import DataError, PactrainError
from pactrain.evaluate import evaluate
from pactrain.events import Callback, silent
from pactrain.losses import AnyLoss, Loss, resolve
from pactrain.modes import evaluating
from pactrain.moment import Array, log_grid
from pactrain.posterior import Posterior, Snapshot
from pactrain.risks import Risks, clip_range, first_measured, measure_risks
from pactrain.rounding import priced_priors
from pactrain.scan import moment_at
from pactrain.seeds import generator
from pactrain.threads import threads_for
from pactrain.versions import versions
from pactrain.whole_numbers import as_network_takes

GAMMA_GRID = log_grid(0.5, 2000.0, 40)
"""γ from which the best is taken, at the cost of ln 40."""

MONTE_CARLO_SHARE = 0.2
"""Part of an event's δ spent on measuring the risk by draws; the rest is the bound's."""

PSI_EXAMPLES = 2000

DRAWS = 2000
"""Independent draws with which the risk is measured unless the user asks for more."""

VACUOUS_ERROR = 0.999
"""From here on a bound on the error says nothing; a little below 1, as bounds from a large divergence come close without reaching it."""


@dataclass(frozen=True)
class _Scene:
    """What all statements share."""

    posterior: Posterior
    batches: Batches
    loss: AnyLoss
    draws: int
    seed: int
    progress: Callback
    label: Label
    delta_each: float
    moments: int  # how many posteriors are measured


def certify(
    posterior: Posterior,
    data: Any,
    *,
    loss: str | AnyLoss | None = None,
    delta: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
    test: Any = None,
    caveats: Sequence[str] = (),
    remarks: Sequence[str] = (),
    earlier: Mapping[str, Snapshot] | None = None,
    objective: Mapping[str, float] | None = None,
    progress: Callback = silent,
) -> Certificate:
    """State all that can be said about the randomised predictor `posterior` from its training data.

    draws:     independent draws with which the risk is measured; more give smaller numbers, at most by the price of measuring.
    test:      data never used in training: adds the test-set bound for the mean network.
    caveats:   reasons why the assumptions cannot be taken for granted; each is printed, and nothing is called certified then.
    remarks:   anything else that should be printed with the numbers.
    earlier:   posteriors of earlier moments of the same training (such as the end of stage 1) to be stated as well.
    objective: terms of the training objective (risk, kl_term, complexity and the constants of η), stated as heuristics.
    """
    if not 0 < delta < 1:
        raise PactrainError(f"delta={delta} must lie strictly between 0 and 1; .05 means 95 % confidence")
    if draws < 1:
        raise PactrainError(f"draws={draws}: the risk has to be measured with at least one draw of the weights")
    device, dtype = posterior.log_std.device, posterior.means()[0].dtype
    batches = as_batches(data, batch_size=None, device=device, dtype=dtype)
    first = next(iter(batches.ordered()), None)
    if first is None:
        raise DataError("the data has no batch: nothing can be said without examples")
    loss = resolve(loss, first)
    if batches is not data:
        as_network_takes(posterior.model, batches, loss)
    held_out = None
    if test is not None:
        held_out = as_batches(test, batch_size=None, device=device, dtype=dtype, role="test")
        if held_out is not test:
            as_network_takes(posterior.model, held_out, loss)
        check_columns(batches, held_out)
    reasons = [*caveats, *model_caveats(posterior.model), *data_caveats(batches)]
    events = _events(loss, list(priced_priors(posterior)), held_out is not None)
    scene = _Scene(
        posterior,
        batches,
        loss,
        draws,
        seed,
        progress,
        "estimated" if reasons else "certified",
        delta / len(events),
        1 + len(earlier or {}),
    )
    model = posterior.model
    with evaluating(model), threads_for(model, first_measured(posterior, batches, loss), loss):
        statements, measured, notes = _about(scene, "end of training")
        for when, snapshot in (earlier or {}).items():
            now = posterior.snapshot()
            posterior.restore(snapshot)
            statements += _about(scene, when)[0]
            posterior.restore(now)
        if held_out is not None:
            statements += _test_statements(scene, held_out)
            notes = [*leaks(batches, held_out), *notes]
    statements += _heuristics(objective or {})
    n = int(measured["n"])
    return Certificate(
        statements=tuple(statements),
        delta=delta,
        n=n,
        loss=loss.name if isinstance(loss, Loss) else "custom",
        seed=seed,
        notes=(*reasons, *remarks, *dropout_note(posterior.model), *notes),
        budget={event: delta / len(events) for event in events},
        measured=measured,
        hashes=hashes_of(posterior, batches),
        versions=versions(),
    )


def hashes_of(posterior: Posterior, batches: Batches) -> dict[str, str]:
    """Fingerprints of the data, the prior and the posterior that a certificate is about."""
    units = [] if posterior.units is None else [posterior.units]
    return {
        "data": digest_data(batches),
        "prior": digest_tensors([posterior.prior_mean, *units]),
        "posterior": digest_tensors([*posterior.means(), posterior.log_std, posterior.prior_log_std]),
    }


def _events(loss: AnyLoss, priors: list[str], with_test: bool) -> list[str]:
    """What may fail, each with an equal part of δ."""
    events = ["unbounded loss"]
    if isinstance(loss, Loss) and loss.task == "classification":
        events += [*(f"0-1 error, {prior}" for prior in priors), "one drawn network"]
        events += ["test set"] if with_test else []
    if clip_range(loss) is not None:
        events += [f"clipped loss, {prior}" for prior in priors]
    return events


def _about(scene: _Scene, when: str) -> tuple[list[Statement], dict[str, Any], list[str]]:
    """Everything about one posterior."""
    posterior, loss = scene.posterior, scene.loss
    risks = measure_risks(posterior, scene.batches, loss, values=scene.draws, seed=scene.seed, progress=scene.progress)
    priors = priced_priors(posterior)
    statements: list[Statement] = []
    if risks.error is not None:
        statements += [
            _kl_statement(scene, risks, risks.error, "0-1 error", 1.0, name, *price, when)
            for name, price in priors.items()
        ]
    limit = clip_range(loss)
    if risks.clipped is not None and limit is not None:
        statements += [
            _kl_statement(scene, risks, risks.clipped, "clipped loss", limit, name, *price, when)
            for name, price in priors.items()
        ]
    prior, (rounded, nats) = next(iter(priors.items()))
    unbounded, interval = _loss_statements(scene, risks, prior, rounded, nats, when)
    statements += unbounded
    if risks.error is not None:
        statements.append(_drawn_statement(scene, risks.n, prior, rounded, nats, when))
    measured = {
        "n": risks.n,
        "values": risks.values,
        "scheme": risks.scheme,
        "psi_interval": interval,
        "loss": risks.loss,
    }
    return statements, measured, measuring_notes(statements, risks, posterior, rounded)


def _kl_statement(
    scene: _Scene,
    risks: Risks,
    mean: float,
    quantity: str,
    scale: float,
    prior: str,
    prior_log_std: Tensor,
    nats: float,
    when: str,
) -> Statement:
    inputs = {
        "mean": mean,
        "values": risks.values,
        "delta_draws": MONTE_CARLO_SHARE * scene.delta_each / scene.moments,
        "kl": float(scene.posterior.kl_by_group(prior_log_std).sum()),
        "prior_nats": nats,
        "n": risks.n,
        "delta_bound": (1 - MONTE_CARLO_SHARE) * scene.delta_each,
        "scale": scale,
    }
    limit = VACUOUS_ERROR * scale
    return statement(quantity, RANDOMISED, scene.label, "kl", inputs, prior=prior, when=when, vacuous_at=limit)


def _loss_statements(
    scene: _Scene, risks: Risks, prior: str, prior_log_std: Tensor, nats: float, when: str
) -> tuple[list[Statement], list[float]]:
    """The unbounded loss in its two forms, at the best γ of the grid; and an interval for ψ at the γ of the first."""
    loss = scene.loss
    name = f"{loss.name.replace('_', '-')} loss" if isinstance(loss, Loss) else "loss"
    psi, low, high = _psi(scene, prior_log_std, risks.n)
    k = float((psi / GAMMA_GRID**2).max())
    kl = float(scene.posterior.kl_by_group(prior_log_std).sum())

    def at(form: str, gamma: float, complexity: float) -> Statement:
        inputs = {
            "risk": risks.loss,
            "kl": kl,
            "prior_nats": nats + math.log(len(GAMMA_GRID)),
            "confidence_nats": math.log(1 / scene.delta_each),
            "n": risks.n,
            "gamma": gamma,
            "complexity": complexity,
        }
        return statement(name, RANDOMISED, "estimated", f"unbounded ({form})", inputs, prior=prior, when=when)

    pairs = list(zip(GAMMA_GRID.tolist(), psi.tolist(), strict=True))
    cgf = min((at("cgf", g, p / g) for g, p in pairs), key=lambda s: s.value)
    paper = min((at("paper", g, g * k) for g, _ in pairs), key=lambda s: s.value)
    index = GAMMA_GRID.tolist().index(cgf.inputs["gamma"])
    return [cgf, paper], [float(low[index]), float(high[index])]


def _psi(scene: _Scene, prior_log_std: Tensor, n: int) -> tuple[Array, Array, Array]:
    """ψ_mfold at the prior's own vector of stds for every γ, between a lower and an upper end.

    The ends are the mean over draws less two standard errors, and the largest draw plus two of its own.
    """
    subset = scene.batches.subset(PSI_EXAMPLES, scene.seed)
    table, errors = moment_at(
        scene.posterior, subset, scene.loss, prior_log_std, GAMMA_GRID, draws=PSI_DRAWS, seed=scene.seed
    )
    psi = _mfold(table, n)
    spread = table.std(axis=0) / math.sqrt(len(table))
    return psi, table.mean(axis=0) - 2 * spread, table.max(axis=0) + 2 * errors.max(axis=0)


def _mfold(table: Array, n: int) -> Array:
    averaged = (np.logaddexp.reduce(n * table, axis=0) - math.log(len(table))) / n
    return np.asarray(np.maximum(averaged, 0.0), dtype=np.float64)


@torch.no_grad()
def _drawn_statement(scene: _Scene, n: int, prior: str, prior_log_std: Tensor, nats: float, when: str) -> Statement:
    """One network drawn from the posterior: the same bound with ln dQ/dP at it in the place of the KL."""
    posterior = scene.posterior
    source = generator(posterior.log_std.device, scene.seed, "one network")
    state = source.get_state()
    noise = posterior.fresh_noise(source)
    source.set_state(state)
    ratio = posterior.log_ratio(noise, prior_log_std)
    del noise  # as large as the network
    with posterior.sampled(source) as model:
        risk = 1 - evaluate(model, scene.batches.ordered(), scene.loss)["accuracy"]
    inputs = {
        "risk": min(1.0, max(0.0, risk)),
        "log_ratio": ratio,
        "prior_nats": nats,
        "n": n,
        "delta_bound": scene.delta_each / scene.moments,
    }
    return statement(
        "0-1 error",
        DRAWN,
        scene.label,
        "disintegrated",
        inputs,
        prior=prior,
        when=when,
        vacuous_at=VACUOUS_ERROR,
    )


def _test_statements(scene: _Scene, held_out: Batches) -> list[Statement]:
    scores = evaluate(scene.posterior.model, held_out.ordered(), scene.loss)
    if "accuracy" not in scores:
        return []
    n = int(scores["n"])
    inputs = {"errors": round((1 - scores["accuracy"]) * n), "n": n, "delta_bound": scene.delta_each}
    dependent = of_a_graph(next(iter(held_out.ordered()))) or shared_rows(scene.batches, held_out)
    label: Label = "estimated" if dependent else "certified"
    return [statement("0-1 error", MEAN, label, "test set", inputs, vacuous_at=VACUOUS_ERROR)]


def _heuristics(terms: Mapping[str, float]) -> list[Statement]:
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
