"""Evaluation at the end: what can be said about a trained posterior."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pactrain.batches import Batches, as_batches
from pactrain.certificate import Certificate, Label, Statement, statement
from pactrain.errors import PactrainError
from pactrain.evaluate import evaluate
from pactrain.events import Callback, Event, silent
from pactrain.losses import AnyLoss, Loss, per_example, resolve
from pactrain.modes import batch_norms, evaluating
from pactrain.moment import LOG_STD_RANGE, log_grid
from pactrain.posterior import Posterior
from pactrain.seeds import generator
from pactrain.versions import versions

PRIOR_GRID = np.linspace(*LOG_STD_RANGE, 71)
"""Log-stds to which a learned prior is rounded; fixed before any data is seen, so that choosing costs ln 71 a group."""

GAMMA_GRID = log_grid(0.5, 2000.0, 40)
"""γ from which the best is taken, at the cost of ln 40."""

MONTE_CARLO_SHARE = 0.2
"""Part of δ spent on measuring the risk by draws; the rest is the bound's."""

PSI_DRAWS = 20


def certify(
    posterior: Posterior,
    data: Any,
    *,
    loss: str | AnyLoss | None = None,
    delta: float = 0.05,
    draws: int = 200,
    seed: int = 0,
    caveats: Sequence[str] = (),
    progress: Callback = silent,
) -> Certificate:
    """State what can be said about the randomised predictor `posterior` from its training data.

    `caveats` are reasons why the assumptions cannot be taken for granted (dependent rows, preprocessing fitted on the
    same rows): each is printed, and no number is then called certified.
    """
    if not 0 < delta < 1:
        raise PactrainError(f"delta={delta} must lie strictly between 0 and 1; .05 means 95 % confidence")
    if draws < 1:
        raise PactrainError(f"draws={draws}: the risk has to be measured with at least one draw of the weights")
    batches = as_batches(data, batch_size=None, device=posterior.log_std.device)
    loss = resolve(loss, next(iter(batches.ordered()), None))
    caveats = [*caveats, *_model_caveats(posterior)]
    prior_log_std, prior_nats = round_prior(posterior)
    kl = float(posterior.kl_by_group(prior_log_std).sum())
    with evaluating(posterior.model):
        risk, error, n = _risks(posterior, batches, loss, draws, seed, progress)
        psi = _psi(posterior, batches, loss, prior_log_std, n, seed)
    statements: list[Statement] = []
    if error is not None:
        statements.append(
            _error_statement(error, draws, delta, kl, prior_nats, n, "estimated" if caveats else "certified")
        )
    statements.append(_loss_statement(loss, risk, delta, kl, prior_nats, n, psi))
    notes = list(caveats)
    if kl > math.log(PSI_DRAWS):
        notes.append(
            f"the estimate of the loss bound rests on {PSI_DRAWS} draws of the prior, too few to see the rare "
            f"networks that a divergence of {kl:,.0f} nats is about"
        )
    return Certificate(
        tuple(statements),
        delta,
        n,
        loss.name if isinstance(loss, Loss) else "custom",
        draws,
        seed,
        tuple(notes),
        versions(),
    )


def round_prior(posterior: Posterior) -> tuple[Tensor, float]:
    """The prior's log-stds on the fixed grid (nearest point), and the price of having chosen them, in nats."""
    grid = torch.from_numpy(PRIOR_GRID)
    own = posterior.prior_log_std.detach().double().cpu()
    nearest = grid[(own[:, None] - grid[None, :]).abs().argmin(1)]
    return nearest.to(posterior.prior_log_std), len(own) * math.log(len(grid))


@torch.no_grad()
def _risks(
    posterior: Posterior, batches: Batches, loss: AnyLoss, draws: int, seed: int, progress: Callback
) -> tuple[float, float | None, int]:
    risks, errors, n = [], [], 0
    for i in range(draws):
        with posterior.sampled(generator(posterior.log_std.device, seed, "certify", i)) as model:
            scores = evaluate(model, batches.ordered(), loss)
        risks.append(scores["loss"])
        errors.append(1 - scores["accuracy"] if "accuracy" in scores else math.nan)
        n = int(scores["n"])
        progress(Event("certify", i + 1, draws))
    error = float(np.mean(errors))
    return float(np.mean(risks)), None if math.isnan(error) else min(1.0, max(0.0, error)), n


@torch.no_grad()
def _psi(
    posterior: Posterior, batches: Batches, loss: AnyLoss, prior_log_std: Tensor, n: int, seed: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """ψ_mfold at the prior's own vector of stds, for every γ of the grid."""
    rows = []
    for i in range(PSI_DRAWS):
        noise = posterior.fresh_noise(generator(posterior.log_std.device, seed, "psi", i))
        with posterior.prior_draw(prior_log_std, noise) as model:
            x = torch.cat([per_example(loss, model, b) for b in batches.ordered()]).double().cpu()
        gammas = torch.from_numpy(GAMMA_GRID)[:, None]
        rows.append(torch.logsumexp(gammas * (x.mean() - x)[None, :], 1) - math.log(len(x)))
    table = torch.stack(rows)
    return ((torch.logsumexp(n * table, 0) - math.log(PSI_DRAWS)) / n).clamp_min(0).numpy()


def _error_statement(
    error: float, draws: int, delta: float, kl: float, prior_nats: float, n: int, label: Label
) -> Statement:
    inputs = {
        "mean": error,
        "draws": draws,
        "delta_draws": MONTE_CARLO_SHARE * delta,
        "kl": kl,
        "prior_nats": prior_nats,
        "n": n,
        "delta_bound": (1 - MONTE_CARLO_SHARE) * delta,
    }
    return statement("0-1 error", label, "kl", inputs, vacuous_at=0.999999)


def _loss_statement(
    loss: AnyLoss,
    risk: float,
    delta: float,
    kl: float,
    prior_nats: float,
    n: int,
    psi: Iterable[float],
) -> Statement:
    name = f"{loss.name.replace('_', '-')} loss" if isinstance(loss, Loss) else "loss"
    choices = [
        {
            "risk": risk,
            "kl": kl,
            "prior_nats": prior_nats + math.log(len(GAMMA_GRID)),
            "confidence_nats": math.log(1 / delta),
            "n": n,
            "gamma": float(gamma),
            "complexity": float(value) / float(gamma),
        }
        for gamma, value in zip(GAMMA_GRID, psi, strict=True)
    ]
    candidates = [statement(name, "estimated", "unbounded", inputs) for inputs in choices]
    return min(candidates, key=lambda s: s.value)


def _model_caveats(posterior: Posterior) -> list[str]:
    if batch_norms(posterior.model):
        return [
            "BatchNorm's running statistics were taken from the training data and are not counted in the divergence; "
            "use GroupNorm for a certificate"
        ]
    return []
