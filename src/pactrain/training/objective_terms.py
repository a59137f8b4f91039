"""The training objective at the end of stage 1, term by term, and the constants of the paper's correction η."""

import torch

from pactrain.bounds.moment import LOG_STD_RANGE
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.training.history import Record, is_fresh
from pactrain.training.trainer import Trainer


def objective_terms(trainer: Trainer, history: list[Record]) -> dict[str, float]:
    """The terms, and where the bound holds γ the constants of η; empty if nothing was trained."""
    last = trainer.progress.stage1 or (history[-1] if history else None)
    if last is None:
        return {}
    if not is_fresh(last):  # an interrupted run ends between looks
        last = trainer.measured_now(last["risk"])
    terms = {k: last[k] for k in ("risk", "kl_term", "complexity")}
    if not trainer.bound.holds_gamma:
        return terms
    rules, moment = trainer.rules, trainer.plan.moment
    return terms | {
        **_sizes(trainer.posterior, trainer.stage1_end),
        "n": trainer.bound.n,
        "largest_k": float(moment.k("mean", gamma_min=rules.gamma_min, gamma_max=rules.gamma_max).max()),
        "delta": trainer.bound.delta,
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
