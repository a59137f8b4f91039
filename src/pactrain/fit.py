"""`fit`: one call from a network and data to a trained network and a certificate."""

import math
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pactrain.auto import Rules, rules_for
from pactrain.batches import Batches, TensorBatches, as_batches
from pactrain.budget import Budget, parse_budget
from pactrain.certificate import Certificate
from pactrain.certify import certify
from pactrain.errors import DataError, PactrainError
from pactrain.evaluate import Scores, evaluate, measure
from pactrain.events import Callback, Event
from pactrain.losses import AnyLoss, Loss, resolve
from pactrain.modes import batch_statistics, estimate_batch_norm, restored_modes
from pactrain.moment import LOG_STD_RANGE, Moment, estimate_moment, log_grid
from pactrain.posterior import Posterior
from pactrain.prior import Prior
from pactrain.runs import RunFolder
from pactrain.seeds import derive, seed_global
from pactrain.stages import OptimizerFactory, Record, Trainer
from pactrain.versions import versions

CERTIFICATE_EXAMPLES = 5_000_000
"""Forward passes of one example that the certificate may take, so that it costs less than training."""


@dataclass
class Result:
    """What `fit` returns: the trained network, its posterior, what was proved, and how it went."""

    model: nn.Module
    posterior: Posterior
    certificate: Certificate
    history: list[Record]
    metrics: dict[str, Any]
    moment: Moment
    config: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    path: Path | None = None


def fit(
    model: nn.Module,
    data: Any,
    *,
    loss: str | AnyLoss | None = None,
    prior: str | Prior = "layer",
    bound: str = "auto",
    preset: str | Rules = "auto",
    delta: float = 0.05,
    test: Any = None,
    device: str | torch.device = "auto",
    seed: int = 0,
    budget: str | float | Budget | None = None,
    optimizer: OptimizerFactory | None = None,
    callbacks: Sequence[Callback] = (),
    out: str | Path | None = None,
    resume: bool = False,
    caveats: Sequence[str] = (),
    extra_config: dict[str, Any] | None = None,
) -> Result:
    """Train `model` in place by minimising a PAC-Bayes bound on `data`; nothing has to be tuned.

    data:      `(X, y)`, a Dataset, a DataLoader, or any re-iterable of batches.
    loss:      a name (see `pactrain.losses.LOSSES`) or `loss(predict, batch) -> one loss an example`.
    prior:     "layer", "tensor", "model", or a `Prior`.
    bound:     "auto" (what the preset says), or "cgf" / "paper": the two forms of the bound for unbounded losses.
    preset:    "auto", "paper", "authors", or a `pactrain.auto.Rules`.
    delta:     probability with which the statements of the certificate may fail, all together.
    test:      data only ever looked at for the history and the report.
    budget:    60 or "60s", "5m", "100 epochs": the most that training may take.
    optimizer: a function from parameter groups to a torch optimiser; by default Adam.
    out:       a run folder to write, with checkpoints; `resume=True` goes on from its last checkpoint.
    caveats:   reasons why the certificate's assumptions may not hold; printed with it.

    >>> import torch
    >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0)); y = (X[:, 0] > 0).long()
    >>> result = fit(torch.nn.Linear(3, 2), (X, y), budget="20 epochs")
    >>> result.metrics["train"]["accuracy"] > 0.9
    True
    """
    started = time.monotonic()
    rules = _rules(preset, bound)
    limit = parse_budget(budget)
    where = _device(device)
    model.to(where)
    with _own_randomness(where, seed), restored_modes(model):
        batches, test_batches = _batches(data, rules, where, "training"), None
        if test is not None:
            test_batches = _batches(test, rules, where, "test")
        first = next(iter(batches.ordered()), None)
        if first is None:
            raise DataError("the training data has no batch")
        loss = resolve(loss, first)
        posterior = Posterior(model, prior if isinstance(prior, Prior) else Prior(per=prior))  # type: ignore[arg-type]
        start, steps = _look_at_data(posterior, batches, loss)
        n = int(start["n"])
        config = _config(posterior, loss, rules, delta, seed, limit, n, optimizer, extra_config)
        folder = RunFolder.open(out, config, resume=resume) if out is not None else None
        tell = _teller(callbacks)
        moment = _scan(posterior, batches, loss, rules, n, seed, tell, folder)
        objective = rules.bound(n, delta, moment, len(posterior.groups))
        posterior.reset_std(rules.start_std(posterior, objective))
        _training_mode(model)
        trainer = Trainer(
            posterior,
            batches,
            loss,
            objective,
            rules,
            seed=seed,
            steps_per_epoch=steps,
            start_loss=float(moment.loss()[0]),
            budget=limit,
            test=test_batches,
            optimizer=optimizer,
        )
        history = folder.restore(trainer) if folder is not None else []
        interrupted = _train(trainer, history, folder, tell)
        estimate_batch_norm(model, batches.ordered(), loss)
        scores = {"train": evaluate(model, batches.ordered(), loss)}
        if test_batches is not None:
            scores["test"] = evaluate(model, test_batches.ordered(), loss)
        draws = max(20, min(200, CERTIFICATE_EXAMPLES // n))
        certificate = certify(
            posterior, batches, loss=loss, delta=delta, draws=draws, seed=seed, caveats=caveats, progress=tell
        )
        notes = _notes(trainer, scores["train"], batches, loss, interrupted)
        metrics = _metrics(trainer, scores, time.monotonic() - started, folder)
    result = Result(model, posterior, certificate, history, metrics, moment, config, notes, interrupted)
    if folder is not None:
        result.path = folder.path
        folder.finish(result)
    return result


def _rules(preset: str | Rules, bound: str) -> Rules:
    rules = rules_for(preset)
    if bound == "auto":
        return rules
    if bound not in ("cgf", "paper"):
        raise PactrainError(f"bound {bound!r} is not known; use 'auto', 'cgf' or 'paper'")
    return rules.replace(mode=bound)


def _device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(device)


@contextmanager
def _own_randomness(device: torch.device, seed: int) -> Any:
    """Leave the caller's global random state as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        seed_global(derive(seed, "start"))
        yield


def _batches(data: Any, rules: Rules, device: torch.device, role: str) -> Batches:
    size = len(data) if isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__") else None
    batches = as_batches(data, batch_size=rules.batch(size) if size else None, device=device, role=role)
    if isinstance(batches, TensorBatches):
        batches.batch_size = rules.batch(len(batches))
    return batches


def _training_mode(model: nn.Module) -> None:
    """Train mode, unless the user has already put parts of the model into it and left others out."""
    if not any(m.training for m in model.modules()):
        model.train()


def _look_at_data(posterior: Posterior, batches: Batches, loss: AnyLoss) -> tuple[Scores, int]:
    """The untrained network's scores, n, and the number of batches an epoch."""
    if isinstance(batches, TensorBatches):
        steps = sum(1 for _ in batches.epoch(0))
        source: Any = batches.ordered()
    else:
        source = list(batches.ordered())
        steps = len(source)
    with batch_statistics(posterior.model):
        scores = measure(posterior.model, source, loss)
    if not math.isfinite(scores["loss"]):
        raise DataError(
            f"the loss of the untrained network is {scores['loss']}; look for NaN or huge values in the inputs and "
            "targets, and for a logarithm or a division by zero in the loss"
        )
    return scores, steps


def _scan(
    posterior: Posterior,
    batches: Batches,
    loss: AnyLoss,
    rules: Rules,
    n: int,
    seed: int,
    tell: Callback,
    folder: RunFolder | None,
) -> Moment:
    kept = folder.moment() if folder is not None else None
    if kept is not None:
        return kept
    moment = estimate_moment(
        posterior,
        batches,
        loss,
        gammas=log_grid(rules.gamma_min, rules.gamma_max, rules.gamma_points),
        log_stds=[
            LOG_STD_RANGE[0] + (LOG_STD_RANGE[1] - LOG_STD_RANGE[0]) * i / (rules.std_points - 1)
            for i in range(rules.std_points)
        ],
        draws=rules.draws,
        max_examples=rules.scan_examples,
        n=n,
        seed=seed,
        progress=tell,
    )
    if folder is not None:
        folder.write_moment(moment)
        return folder.moment() or moment  # what a resumed run would read, to the last bit
    return moment


def _train(trainer: Trainer, history: list[Record], folder: RunFolder | None, tell: Callback) -> bool:
    """Run the stages; True if the user interrupted them."""
    expected = trainer.stage1_limit
    try:
        for record in trainer.epochs():
            history.append(record)
            if folder is not None:
                folder.keep(record, trainer)
            if trainer.progress.stage == 2:
                expected = trainer.progress.stage1_epochs + trainer.stage2_limit
            tell(Event("train", trainer.progress.epoch, max(expected, trainer.progress.epoch), record))
    except KeyboardInterrupt:
        return True
    return False


def _notes(trainer: Trainer, train: Scores, batches: Batches, loss: AnyLoss, interrupted: bool) -> list[str]:
    notes = []
    if interrupted:
        notes.append("Training was interrupted; this is the state it had reached.")
    majority = _majority(batches) if isinstance(loss, Loss) and loss.task == "classification" else None
    if majority is not None and majority < 1 and train["accuracy"] <= majority + 0.01:
        notes.append(
            f"The network predicts no better than always naming the largest class ({100 * majority:.1f} % of the "
            "training data): it has stayed at its prior. Check the scale of the inputs and that the labels belong to them."
        )
    return notes


def _majority(batches: Batches) -> float | None:
    if not isinstance(batches, TensorBatches):
        return None
    target = batches.tensors[-1]
    if target.is_floating_point() or target.ndim != 1:
        return None
    return float(torch.bincount(target - target.min()).max()) / len(target)


def _metrics(trainer: Trainer, scores: dict[str, Scores], seconds: float, folder: RunFolder | None) -> dict[str, Any]:
    p = trainer.progress
    metrics: dict[str, Any] = dict(scores)
    stage1 = p.stage1 or {}
    metrics["stage1"] = {k: stage1[k] for k in ("train", "test", "bound", "risk", "kl", "gamma") if k in stage1}
    before = folder.seconds_before if folder is not None else 0.0
    metrics |= {
        "seconds": round(seconds + before, 3),
        "steps": p.step,
        "stage1_epochs": p.stage1_epochs,
        "stage2_epochs": p.stage2_epochs,
    }
    return metrics


def _config(
    posterior: Posterior,
    loss: AnyLoss,
    rules: Rules,
    delta: float,
    seed: int,
    limit: Budget,
    n: int,
    optimizer: OptimizerFactory | None,
    extra: dict[str, Any] | None,
) -> dict[str, Any]:
    return {
        "loss": loss.name if isinstance(loss, Loss) else getattr(loss, "__qualname__", type(loss).__name__),
        "groups": {g: at.stop - at.start for g, at in zip(posterior.groups, posterior.group_slices, strict=True)},
        "rules": asdict(rules),
        "delta": delta,
        "seed": seed,
        "budget": {"seconds": None if math.isinf(limit.seconds) else limit.seconds, "epochs": limit.epochs},
        "n": n,
        "optimizer": "Adam" if optimizer is None else getattr(optimizer, "__qualname__", type(optimizer).__name__),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        **(extra or {}),
    }


def _teller(callbacks: Sequence[Callback]) -> Callback:
    def tell(event: Event) -> None:
        for callback in callbacks:
            callback(event)

    return tell
