"""What a finished training tells its certificate, and the certificate of a finished training."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from pactrain.bounds.moment import LOG_STD_RANGE, Moment
from pactrain.bounds.unbounded import Unbounded
from pactrain.certification.caveats import counting_remarks
from pactrain.certification.certificate import Certificate
from pactrain.certification.certify import certify
from pactrain.certification.in_units import named_in_units
from pactrain.certification.risks import affordable_draws
from pactrain.certification.statement import Caveat
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.read import Problem
from pactrain.rules.initial_scale import STRENGTHENED
from pactrain.rules.units import Units, losses_in_units
from pactrain.runtime.events import Callback, silent
from pactrain.training.history import Record, is_fresh
from pactrain.training.start import Start
from pactrain.training.trainer import Trainer

INTERRUPTED = "training was interrupted by hand while the test score could be seen, so the test set proves nothing about this network"


def facts_of(
    trainer: Trainer,
    problem: Problem,
    *,
    start: Start,
    units: Units,
    caveats: Sequence[Caveat],
    objective: Mapping[str, float],
    stopped: bool,
) -> dict[str, Any]:
    """What a certificate states besides data and weights, as plain values: with it the certificate can be made again."""
    posterior, progress = trainer.posterior, trainer.progress
    draws = affordable_draws(
        posterior, problem.batches, problem.loss, start.n, epochs=progress.epoch, steps=progress.step
    )
    strengthened = [STRENGTHENED] if start.strengthened else []
    return {
        "draws": draws,
        "caveats": [asdict(c) for c in caveats],
        "remarks": [*units.remarks(), *counting_remarks(problem.batches), *strengthened],
        "test": problem.test is not None,
        "test_doubts": [INTERRUPTED] if stopped else [],
        "objective": dict(objective),
        "target_unit": units.target,
        "loss_degree": units.ends.degree,
    }


def certificate_of(
    posterior: Posterior,
    problem: Problem,
    facts: Mapping[str, Any],
    *,
    delta: float,
    seed: int,
    caveats: Sequence[str | Caveat],
    earlier: Mapping[str, Snapshot],
    progress: Callback = silent,
) -> Certificate:
    """The certificate of a finished training, which `fit` makes and `pactrain verify RUN` makes again."""
    made = certify(
        posterior,
        problem.batches,
        loss=losses_in_units(problem.loss, facts["target_unit"]),
        delta=delta,
        draws=facts["draws"],
        seed=seed,
        test=problem.test if facts["test"] else None,
        caveats=[*caveats, *(Caveat(**c) for c in facts["caveats"])],
        remarks=facts["remarks"],
        test_doubts=facts["test_doubts"],
        earlier=earlier,
        objective=facts["objective"],
        progress=progress,
    )
    return named_in_units(made, facts["target_unit"], facts["loss_degree"])


def objective_terms(trainer: Trainer, moment: Moment, history: list[Record], delta: float) -> dict[str, float]:
    """The training objective at the end of stage 1, and the constants of the paper's η."""
    last = trainer.progress.stage1 or (history[-1] if history else None)
    if last is None:
        return {}
    if not is_fresh(last):  # an interrupted run ends between looks
        last = trainer.measured_now(last["risk"])
    terms = {k: last[k] for k in ("risk", "kl_term", "complexity")}
    if not isinstance(trainer.bound, Unbounded):
        return terms
    rules = trainer.rules
    return terms | {
        **_sizes(trainer.posterior, trainer.stage1_end),
        "n": trainer.bound.n,
        "largest_k": float(moment.k("mean", gamma_min=rules.gamma_min, gamma_max=rules.gamma_max).max()),
        "delta": delta,
        "gamma_min": rules.gamma_min,
        "gamma_max": rules.gamma_max,
    }


@torch.no_grad()
def _sizes(posterior: Posterior, at: Snapshot | None) -> dict[str, float]:
    """The constants of η that depend on the posterior, at a snapshot: those of later weights would not belong to its objective."""
    now = None
    if at is not None:
        now = posterior.snapshot()
        posterior.restore(at)
    lowest = torch.full_like(posterior.prior_log_std, LOG_STD_RANGE[0])
    sizes = {
        "groups": len(posterior.groups),
        "weights": posterior.num_weights,
        "mean_size": float((posterior.prior_mean + posterior.mean_shift()).square().mean().sqrt()),
        "mean_variance": float((2 * posterior.log_std).exp().mean()),
        "largest_kl": float(posterior.kl_by_group(lowest).sum()),
    }
    if now is not None:
        posterior.restore(now)
    return sizes
