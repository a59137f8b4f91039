"""The statements of a certificate about one posterior: what is measured, what is charged, what is claimed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pactrain.bounds.moment import Array, log_grid
from pactrain.bounds.prior_price import priced_priors
from pactrain.certification.audit import of_a_graph
from pactrain.certification.caveats import measuring_notes
from pactrain.certification.risks import Risks, clip_range, measure_risks
from pactrain.certification.statement import DRAWN, MEAN, RANDOMISED, RANK, Label, Statement, statement
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import ConstantAnswer, best_constant
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.problem.scores import evaluate
from pactrain.runtime.events import Callback
from pactrain.runtime.seeds import generator
from pactrain.scan.estimate import moment_at

GAMMA_GRID = log_grid(0.5, 2000.0, 40)
"""γ from which the best is taken, at the cost of ln 40."""

MONTE_CARLO_SHARE = 0.2
"""Part of an event's δ spent on measuring the risk by draws; the rest is the bound's."""

PSI_DRAWS, PSI_EXAMPLES, PSI_FEWEST = 20, 2000, 100
"""Draws of the prior from which ψ is estimated, examples that it is estimated on, and the fewest that show a loss's spread."""


@dataclass(frozen=True)
class Scene:
    """What all statements share."""

    posterior: Posterior
    batches: Batches
    loss: AnyLoss
    constant: ConstantAnswer | None
    draws: int
    seed: int
    progress: Callback
    label: Label
    delta_each: float
    moments: int  # how many posteriors are measured


def about(scene: Scene, when: str) -> tuple[list[Statement], dict[str, Any], list[str]]:
    """Everything about one posterior."""
    posterior, loss = scene.posterior, scene.loss
    risks = measure_risks(posterior, scene.batches, loss, values=scene.draws, seed=scene.seed, progress=scene.progress)
    priors = priced_priors(posterior)
    statements: list[Statement] = []
    if risks.error is not None:
        statements = [
            _kl_statement(scene, risks, risks.error, "0-1 error", 1.0, name, *price, when, _error(scene))
            for name, price in priors.items()
        ]
    if risks.clipped is not None:
        limit = clip_range(loss)
        assert limit is not None
        trivial = None if scene.constant is None else scene.constant.clipped(limit)
        statements += [
            _kl_statement(scene, risks, risks.clipped, "clipped loss", limit, name, *price, when, trivial)
            for name, price in priors.items()
        ]
    prior, (rounded, nats) = next(iter(priors.items()))
    unbounded, interval = _loss_statements(scene, risks, prior, rounded, nats, when)
    statements += unbounded
    if risks.error is not None:
        statements.append(_drawn_statement(scene, risks.n, prior, rounded, nats, when))
    measured = {
        "n": risks.n,
        "draws": scene.draws,
        "values": risks.values,
        "scheme": risks.scheme,
        "psi_interval": interval,
        "loss": risks.loss,
    }
    return statements, measured, measuring_notes(statements, risks)


def _error(scene: Scene) -> float | None:
    """The 0-1 error of the best constant answer."""
    return None if scene.constant is None else scene.constant.error


def _kl_statement(
    scene: Scene,
    risks: Risks,
    mean: float,
    quantity: str,
    scale: float,
    prior: str,
    prior_log_std: Tensor,
    nats: float,
    when: str,
    trivial: float | None,
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
    return statement(quantity, RANDOMISED, scene.label, "kl", inputs, prior=prior, when=when, constant_answer=trivial)


def _loss_statements(
    scene: Scene, risks: Risks, prior: str, prior_log_std: Tensor, nats: float, when: str
) -> tuple[list[Statement], list[float]]:
    """The unbounded loss in its two forms, at the best γ of the grid; and an interval for ψ at the γ of the first."""
    loss = scene.loss
    name = f"{loss.name.replace('_', '-')} loss" if isinstance(loss, Loss) else "loss"
    psi, low, high = _psi(scene, prior_log_std, risks.n)
    k = float((psi / GAMMA_GRID**2).max())
    kl = float(scene.posterior.kl_by_group(prior_log_std).sum())
    trivial = None if scene.constant is None else scene.constant.loss
    seen = kl <= math.log(PSI_DRAWS) and risks.n >= PSI_FEWEST  # else the draws cannot see what the bound is about
    label: Label = "estimated" if seen and RANK[scene.label] >= RANK["estimated"] else "heuristic"

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
        bound = f"unbounded ({form})"
        return statement(name, RANDOMISED, label, bound, inputs, prior=prior, when=when, constant_answer=trivial)

    pairs = list(zip(GAMMA_GRID.tolist(), psi.tolist(), strict=True))
    cgf = min((at("cgf", g, p / g) for g, p in pairs), key=lambda s: s.value)
    paper = min((at("paper", g, g * k) for g, _ in pairs), key=lambda s: s.value)
    index = GAMMA_GRID.tolist().index(cgf.inputs["gamma"])
    return [cgf, paper], [float(low[index]), float(high[index])]


def _psi(scene: Scene, prior_log_std: Tensor, n: int) -> tuple[Array, Array, Array]:
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
def _drawn_statement(scene: Scene, n: int, prior: str, prior_log_std: Tensor, nats: float, when: str) -> Statement:
    """One network drawn from the posterior: the same bound with ln dQ/dP at it instead of the KL."""
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
        "risk": risk,
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
        constant_answer=_error(scene),
    )


def held_out_statements(scene: Scene, held_out: Batches, doubts: Sequence[str]) -> list[Statement]:
    scores = evaluate(scene.posterior.model, held_out.ordered(), scene.loss)
    if "accuracy" not in scores:
        return []
    n = int(scores["n"])
    inputs = {"errors": round((1 - scores["accuracy"]) * n), "n": n, "delta_bound": scene.delta_each}
    constant = best_constant(held_out, scene.loss, losses=False)
    several = constant is None or constant.several  # shares of wrong pixels, say, are not counted one by one
    dependent = doubts or several or of_a_graph(next(iter(held_out.ordered())))
    label: Label = "heuristic" if dependent else "certified"
    trivial = None if constant is None else constant.error
    return [statement("0-1 error", MEAN, label, "test set", inputs, constant_answer=trivial)]


def heuristics(terms: Mapping[str, float] | None) -> list[Statement]:
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
