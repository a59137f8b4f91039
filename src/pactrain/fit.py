"""`fit`: one call from a network and data to a trained network and a certificate."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import nn

from pactrain import ranks
from pactrain.auto import Rules, rules_for
from pactrain.batches import TensorBatches, check_columns
from pactrain.budget import Budget, parse_budget
from pactrain.caveats import check_disjoint, counting_remarks, prior_remarks
from pactrain.centre import belongs_at_zero, centre_at_zero
from pactrain.certificate import Certificate
from pactrain.certify import certify
from pactrain.errors import DataError, PactrainError, TrainingError
from pactrain.events import Callback, Event
from pactrain.faint import STRENGTHENED, strengthen
from pactrain.gamma_walk import leave_out
from pactrain.gradient_steps import OptimizerFactory
from pactrain.history import Record
from pactrain.interrupt import deferred
from pactrain.losses import AnyLoss, Loss, resolve
from pactrain.modes import estimate_batch_norm, restored_modes
from pactrain.moment import Moment
from pactrain.objectives import make_bound, rules_with, training_loss
from pactrain.outcome import final_scores, metrics_of, notes_on, objective_terms
from pactrain.posterior import Posterior
from pactrain.preparation import (
    TRAINED,
    augmentation,
    channels_last,
    choose_device,
    class_shares,
    configuration,
    counts,
    give_memory_back,
    look_at_data,
    loss_name,
    own_randomness,
    read_batches,
    scan,
    seen_before,
    shapes_named,
    training_mode,
)
from pactrain.prior import Prior
from pactrain.prior_training import split_rows, train_prior
from pactrain.risks import affordable_draws
from pactrain.runs import RunFolder
from pactrain.stages import Stopped, Trainer


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
    prior_data: float = 0.0,
    optimizer: OptimizerFactory | None = None,
    callbacks: Sequence[Callback] = (),
    out: str | Path | None = None,
    resume: bool = False,
    caveats: Sequence[str] = (),
    extra_config: dict[str, Any] | None = None,
) -> Result:
    """Train `model` in place by minimising a PAC-Bayes bound on `data`; nothing has to be tuned.

    data:       `(X, y)`, a Dataset, a DataLoader, any re-iterable of batches, or a torch-geometric `Data`, whose train_mask (or
                all labelled nodes) is trained on; `test=` the same graph measures its test_mask.  `pactrain.augment.augmented((X, y))`
                flips and crops images.
    loss:       a name (see `pactrain.losses.LOSSES`) or `loss(predict, batch) -> one loss an example`.
    prior:      "layer", "tensor", "model", or a `Prior`.
    bound:      "auto" (what the preset says); "cgf" or "paper", the two forms of the bound for unbounded losses; "kl",
                "quad", "lambda", "classic", "catoni", "bbb" for losses in [0, 1] (cross-entropy is clipped); "subgaussian",
                "cgf_rodriguez".
    preset:     "auto", "paper", "authors", or a `pactrain.auto.Rules`.
    delta:      probability with which the statements of the certificate may fail, all together.
    test:       data only ever looked at for the history, the report and the test-set bound.
    budget:     60 or "60s", "5m", "100 epochs": the most that training may take; the certificate comes after it.
    prior_data: part of the data on which the prior is trained first; only the rest is counted in the bound.  A budget in
                epochs is that of the training after it; the prior takes as large a part of as many epochs before.
    optimizer:  a function from parameter groups to a torch optimiser; by default ours.
    out:        a run folder to write, with checkpoints; `resume=True` goes on from its last checkpoint.
    caveats:    reasons why the certificate's assumptions may not hold; printed with it.
    extra_config: anything to be kept with the run's configuration.

    >>> import torch; _ = torch.manual_seed(0)
    >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0)); y = (X[:, 0] > 0).long()
    >>> result = fit(torch.nn.Linear(3, 2), (X, y))
    >>> result.metrics["train"]["accuracy"] > 0.9
    True
    """
    started = time.monotonic()
    if not 0 < delta < 1:
        raise PactrainError(f"delta={delta} must lie strictly between 0 and 1; .05 means 95 % confidence")
    if not isinstance(model, nn.Module):
        what = f"the class {model.__name__}; make a network of it first" if isinstance(model, type) else repr(model)
        raise PactrainError(f"model must be a torch module, and is {what}")
    if resume and out is None:
        raise PactrainError("resume=True goes on with the run in a folder: say which with out=")
    rules = rules_with(rules_for(preset), bound)
    limit = parse_budget(budget)
    where = choose_device(device)
    model.to(where)
    ranks.same_weights(model)
    doubts = [*caveats, *seen_before(model)]
    with own_randomness(where, seed), restored_modes(model), deferred() as stop:
        spec = prior if isinstance(prior, Prior) else Prior(per=prior)  # type: ignore[arg-type]
        tell = _teller(callbacks)
        batches, test_batches = read_batches(model, data, rules, where, "training"), None
        if test is not None:
            test_batches = read_batches(model, test, rules, where, "test")
            check_columns(batches, test_batches)
        if ranks.world() > 1 and not isinstance(batches, TensorBatches):
            raise DataError(
                "several processes can share an (X, y) pair or a TensorDataset, not batches of your own making"
            )
        sample = next(iter(batches.ordered()), None)
        if sample is None:
            raise DataError("the training data has no batch")
        loss = resolve(loss, sample)
        for part in (batches, test_batches):
            if part is not None:
                channels_last(model, part, loss)
        trained_on = training_loss(bound, loss)
        with shapes_named(sample):
            stronger = rules.strengthen and strengthen(model, sample, loss, seed)
        if prior_data:
            first, batches = split_rows(batches, prior_data, seed)
            doubts += check_disjoint(first, batches)
            TRAINED.add(model)
            spec = spec.fixed(
                train_prior(
                    model, first, loss, delta=delta, seed=seed, budget=limit.part(prior_data), stop=stop, tell=tell
                )
            )
        posterior = Posterior(model, spec)
        posterior.probabilities = loss.probabilities if isinstance(loss, Loss) else None
        with shapes_named(sample):
            start, steps = look_at_data(posterior, batches, trained_on)
        n = int(start["n"])
        strength = rules.strength(model, batches, trained_on, seed)
        at_zero = belongs_at_zero(
            posterior,
            rules,
            strength,
            trained_on,
            sample,
            n=n,
            start_loss=start["loss"],
            free=spec.learn and not prior_data and optimizer is None,
        )
        prior_mean = "zero" if at_zero else "initial weights"
        config = configuration(posterior, spec, loss, rules, delta, seed, limit, n, optimizer)
        config |= {"bound": bound, "prior_data": prior_data} | augmentation(batches) | (extra_config or {})
        config |= {"prior_mean": prior_mean}
        charged = n * counts(batches)
        writes = out is not None and ranks.rank() == 0
        folder = RunFolder.open(out, config, resume=resume) if out is not None and writes else None
        moment = scan(posterior, batches, loss, rules, n, steps, seed, tell, None if at_zero else folder)
        std = rules.start_std(posterior, rules.bound(charged, delta, moment, len(posterior.groups)))
        std = spec.std if spec.std is not None else std
        if at_zero:  # after the scan: how much noise the network bears at first shows around its initial weights
            centre_at_zero(posterior)
            moment = scan(posterior, batches, loss, rules, n, steps, seed, tell, folder, below=std)
        posterior.reset_std(std)
        objective = make_bound(
            bound,
            rules,
            n=charged,
            delta=delta,
            moment=moment,
            groups=len(posterior.groups),
            start_log_std=math.log(std),
        )
        training_mode(model)
        held_gamma = ranks.from_first(rules.held_gamma(strength, std))[0]
        walks = rules.held == "walk" and strength is not None and strength.classes
        left_out = leave_out(posterior, batches, trained_on, n, seed) if walks else None
        left_out = None if ranks.largest(float(left_out is None)) else left_out
        give_memory_back()
        trainer = Trainer(
            posterior,
            batches,
            trained_on,
            objective,
            rules,
            moment=moment,
            lr=rules.rate(std, posterior, trained_on, sample),
            held_gamma=held_gamma,
            seed=seed,
            steps_per_epoch=steps,
            start_loss=start["loss"],
            budget=limit.less(ranks.from_first(time.monotonic() - started)[0]),
            test=test_batches,
            stop=stop,
            optimizer=optimizer,
            scored=loss,
            left_out=left_out,
        )
        history = _restored(trainer, folder)
        TRAINED.add(model)
        interrupted = _train(trainer, history, folder, tell)
        ranks.same_weights(model)  # buffers follow the rows that a process has seen
        trainer.curvature = trainer.optimizer = None  # as large as the network, and no longer needed
        give_memory_back()
        estimate_batch_norm(model, batches.ordered(), loss)
        shares = class_shares(batches, loss) or []
        scores = {"train": final_scores(model, batches, loss)}
        if test_batches is not None:
            scores["test"] = final_scores(model, test_batches, loss)
        certificate = certify(
            posterior,
            batches,
            loss=loss,
            delta=delta,
            draws=affordable_draws(posterior, batches, loss, n, trainer.progress.epoch),
            seed=seed,
            test=test_batches,
            caveats=doubts,
            remarks=[
                *([] if prior_data else prior_remarks(start.get("accuracy"), max(shares, default=None))),
                *counting_remarks(batches),
                *([STRENGTHENED] if stronger else []),
            ],
            earlier={} if trainer.stage1_end is None else {"end of stage 1": trainer.stage1_end},
            objective=objective_terms(trainer, moment, history, delta),
            progress=tell,
        )
        notes = notes_on(scores["train"], shares, interrupted)
        if trained_on is not loss:
            notes.append(f"Trained on {loss_name(trained_on)}: the loss brought to [0, 1], as this bound needs it.")
        metrics = metrics_of(trainer, moment, scores, time.monotonic() - started, folder)
        metrics |= {"strengthened": stronger, "prior_mean": prior_mean}
    result = Result(model, posterior, certificate, history, metrics, moment, config, notes, interrupted)
    if folder is not None:
        result.path = folder.path
        folder.finish(result)
    return result


def _restored(trainer: Trainer, folder: RunFolder | None) -> list[Record]:
    """The history up to the last checkpoint, with the trainer of every process where it was then."""
    history: list[Record] = folder.restore(trainer) if folder is not None else []
    if ranks.world() == 1:
        return history
    tensors, values = trainer.state()
    values, history = ranks.document_from_first([values, history])
    if history:
        content = ranks.bytes_from_first(save_bytes({k: v.detach().cpu().contiguous() for k, v in tensors.items()}))
        if ranks.rank():
            trainer.load(load_bytes(content), values)
    return history


def _train(trainer: Trainer, history: list[Record], folder: RunFolder | None, tell: Callback) -> bool:
    """Run the stages; True if the user interrupted them."""
    try:
        for record in trainer.epochs():
            history.append(record)
            if folder is not None:
                folder.keep(record, trainer)
            tell(Event("train", trainer.progress.epoch, trainer.expected_epochs(), record))
    except Stopped:
        return True
    except KeyboardInterrupt:
        if ranks.world() > 1:  # the others are elsewhere: what they hold is not what this process holds
            raise
        return True
    except TrainingError as error:
        if folder is not None and folder.has_checkpoint():
            raise TrainingError(f"{error}. The last good checkpoint is kept in {folder.path / 'checkpoint'}") from None
        raise
    return False


def _teller(callbacks: Sequence[Callback]) -> Callback:
    def tell(event: Event) -> None:
        for callback in callbacks:
            callback(event)

    return tell
