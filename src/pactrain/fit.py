"""`fit`: one call from a network and data to a trained network and a certificate."""

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import nn

from pactrain.bounds.by_name import training_loss
from pactrain.bounds.moment import Moment
from pactrain.bounds.unbounded import Unbounded
from pactrain.certification.caveats import buffer_caveats, buffer_digests, check_disjoint, seen_before
from pactrain.certification.certificate import Certificate
from pactrain.certification.facts import certificate_of, facts_of, objective_terms
from pactrain.certification.prior_check import initial_caveats
from pactrain.certification.statement import Caveat
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.distributions.prior import Prior, trained_source
from pactrain.problem.batches import PriorRows
from pactrain.problem.losses import AnyLoss
from pactrain.problem.module_modes import estimate_batch_norm, restored_modes
from pactrain.problem.read import Problem, read_problem
from pactrain.problem.threads import threads_for
from pactrain.problem.untrained import shapes_named, training_mode
from pactrain.rules.choose_units import find_units
from pactrain.rules.gamma.trained_leave_one_out import LeftOut
from pactrain.rules.gamma.walk import leave_out
from pactrain.rules.initial_scale import strengthen
from pactrain.rules.objective import make_bound, rules_with
from pactrain.rules.presets import Rules, normalised_classes, rules_for
from pactrain.rules.units import Units
from pactrain.runs.configuration import configuration
from pactrain.runs.folder import RunFolder
from pactrain.runs.summary import final_scores, metrics_of, notes_on
from pactrain.runtime import distributed
from pactrain.runtime.devices import choose_device, fresh_casts, give_memory_back
from pactrain.runtime.errors import PactrainError, TrainingError
from pactrain.runtime.events import Callback, Event
from pactrain.runtime.gave_up import collected
from pactrain.runtime.interrupts import deferred
from pactrain.runtime.seeds import own_randomness
from pactrain.runtime.trained_models import TRAINED
from pactrain.training.gradient_steps import OptimizerFactory
from pactrain.training.history import Record
from pactrain.training.options import Options
from pactrain.training.prior_from_data import split_rows, train_prior
from pactrain.training.schedule import Budget, parse_budget
from pactrain.training.start import Start, look_at_start, place_prior
from pactrain.training.trainer import Stopped, Trainer


@dataclass
class Result:
    """What `fit` returns: the trained network, its posterior, what was proved, and how it went.

    model:       the network that was given, trained: the deterministic predictor.
    posterior:   the Gaussian over its weights.
    certificate: what was proved.
    history:     one record per epoch.
    metrics:     scores, and what the run took.
    moment:      the scan of the prior.
    config:      everything that determined the run.
    notes:       what the user should know beside the numbers.
    interrupted: True if the user stopped the training.
    path:        the run folder, if there is one.
    earlier:     posteriors of earlier moments of training that the certificate speaks of.
    """

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
    earlier: dict[str, Snapshot] = field(default_factory=dict)

    def drawn(self) -> nn.Module:
        """The one drawn network that the certificate covers: a copy of the model at one draw of its weights."""
        return self.posterior.drawn(self.certificate.seed)


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
    caveats: Sequence[str | Caveat] = (),
    extra_config: dict[str, Any] | None = None,
) -> Result:
    """Train `model` in place by minimising a PAC-Bayes bound on `data`; nothing has to be tuned.

    data:       `(X, y)`, a Dataset, a DataLoader, any re-iterable of batches, or a torch-geometric `Data`, whose train_mask (or
                all labelled nodes) is trained on; `test=` the same graph measures its test_mask.  `pactrain.problem.augmentation.augmented((X, y))`
                flips and crops images.
    loss:       a name (see `pactrain.problem.losses.LOSSES`) or `loss(predict, batch) -> one loss per example`.
    prior:      "layer", "tensor", "model", or a `Prior`.
    bound:      "auto" (what the preset says); "cgf" or "paper", the two forms of the bound for unbounded losses; "kl",
                "quad", "lambda", "classic", "catoni", "bbb" for losses in [0, 1] (cross-entropy is clipped); "subgaussian",
                "cgf_rodriguez".
    preset:     "auto", "paper", "authors", or a `pactrain.Rules`.
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
    _check(model, delta=delta, out=out, resume=resume)
    rules, limit = rules_with(rules_for(preset), bound), parse_budget(budget)
    where = choose_device(device)
    model.to(where)
    distributed.same_weights(model)
    doubts, tell = seen_before(model), _teller(callbacks)
    with (
        own_randomness(where, seed),
        restored_modes(model),
        fresh_casts(),
        deferred() as stop,
        collected() as given_up,
        ExitStack() as until_end,
    ):
        options = Options(
            rules=rules,
            bound=bound,
            delta=delta,
            seed=seed,
            budget=limit,
            prior_data=prior_data,
            optimizer=optimizer,
            tell=tell,
            stop=stop,
        )
        spec = prior if isinstance(prior, Prior) else Prior(per=prior)  # type: ignore[arg-type]
        given = read_problem(
            model,
            data,
            test=test,
            loss=loss,
            trained_on=partial(training_loss, bound),
            batch_size=rules.batch,
            device=where,
        )
        until_end.enter_context(threads_for(model, given.training_sample(), given.loss))
        first = None
        if prior_data:
            first, rest = split_rows(given.batches, prior_data, seed)
            given = replace(given, batches=rest)
            doubts += [
                *check_disjoint(first, rest),
                *initial_caveats(Posterior(model, spec), rest, given.loss, seed=seed),
            ]
        units = _units(model, given, first, spec=spec, options=options)
        problem = units.applied(given)
        if callbacks:
            options = replace(options, tell=units.teller(model, options.tell))
        with units.in_use(model):
            with shapes_named(problem.sample):
                stronger = rules.strengthen and strengthen(model, problem.sample, problem.loss, seed)
            if first is not None:
                std = train_prior(model, units.rows(first), loss=problem.loss, options=options)
                spec = spec.fixed(std, trained_source(len(first), spec.source))
            buffers = buffer_digests(model)
            start = look_at_start(model, problem, prior=spec, strengthened=stronger, options=options)
            start.posterior.unit_nats = units.nats
            config = configuration(problem, start, options=options, extra={**units.told(), **(extra_config or {})})
            folder = RunFolder.open(out, config, resume=resume) if out is not None and distributed.rank() == 0 else None
            moment, std = place_prior(start, problem, options=options, store=folder)
            trainer = _trainer(problem, start, moment=moment, std=std, options=options, started=started)
            if folder is not None and folder.has_checkpoint():
                TRAINED.add(model)  # the checkpoint's weights are trained, in units, even if reading the rest fails
            history = _restored(trainer, folder)
            TRAINED.add(model)
            interrupted = _train(trainer, history, folder, options.tell)
            _settle(trainer, problem)
            terms = objective_terms(trainer, moment, history, delta)
            strange = units.doubts(model, problem, given)
            doubts += [*buffer_caveats(model, buffers), *map(Caveat, strange)]
        earlier = units.tell(start.posterior, trainer.stage1_end)
        shown = replace(given, test=None) if strange else given
        facts = facts_of(trainer, shown, start=start, units=units, caveats=doubts, objective=terms, stopped=interrupted)
        certificate = certificate_of(
            start.posterior,
            shown,
            facts,
            delta=delta,
            seed=seed,
            caveats=caveats,
            earlier=earlier,
            progress=tell,
        )
        scores = final_scores(model, given)
        notes = notes_on(scores["train"], problem, given, interrupted=interrupted) + given_up
        before = folder.seconds_before if folder is not None else 0.0
        metrics = metrics_of(trainer, moment, scores, before + time.monotonic() - started)
        metrics |= {"strengthened": start.strengthened, "prior_mean": start.prior_mean, "certificate": facts}
    result = Result(
        model, start.posterior, certificate, history, metrics, moment, config, notes, interrupted, earlier=earlier
    )
    if folder is not None:
        result.path = folder.path
        _write(folder, result)
    return result


def _check(model: nn.Module, *, delta: float, out: str | Path | None, resume: bool) -> None:
    """Refuse what cannot be meant, before anything is touched."""
    if not 0 < delta < 1:
        raise PactrainError(f"delta={delta} must lie strictly between 0 and 1; 0.05 means 95 % confidence")
    if not isinstance(model, nn.Module):
        what = f"the class {model.__name__}; make a network of it first" if isinstance(model, type) else repr(model)
        raise PactrainError(f"model must be a torch module, and is {what}")
    if any(p.dtype == torch.float16 and p.requires_grad for p in model.parameters()):
        raise PactrainError(
            "the network has weights in float16, whose range is too small for the stds; use bfloat16 or float32"
        )
    if resume and out is None:
        raise PactrainError("resume=True goes on with the run in a folder: say which with out=")


def _units(model: nn.Module, given: Problem, first: PriorRows | None, *, spec: Prior, options: Options) -> Units:
    """Units to train in, by all rows, or by those of the prior where it has some of its own."""
    if not options.rules.units or not spec.learn or spec.std is not None:
        return Units()
    seen = given if first is None else replace(given, batches=first)
    return find_units(model, seen, options.seed, free=first is not None)


def _trainer(
    problem: Problem, start: Start, *, moment: Moment, std: float, options: Options, started: float
) -> Trainer:
    """The two stages, ready to run from a prior that has been placed at `std`."""
    posterior, rules = start.posterior, options.rules
    objective = make_bound(
        options.bound,
        rules,
        n=start.counted,
        delta=options.delta,
        moment=moment,
        groups=len(posterior.groups),
        start_log_std=math.log(std),
    )
    training_mode(posterior.model)
    normalised = start.counted * normalised_classes(posterior.model, problem.trained_on, problem.sample)
    held_gamma = distributed.from_first(rules.held_gamma(start.strength, std, normalised=normalised))[0]
    # other bounds set the weight of the divergence themselves
    left_out = _left_out(problem, start, options) if isinstance(objective, Unbounded) else None
    give_memory_back()
    return Trainer(
        posterior,
        problem.batches,
        problem.trained_on,
        objective,
        rules,
        moment=moment,
        lr=rules.rate(std, posterior, problem.trained_on, problem.sample),
        held_gamma=held_gamma,
        seed=options.seed,
        steps_per_epoch=start.steps,
        start_loss=start.scores["loss"],
        budget=options.budget.less(distributed.from_first(time.monotonic() - started)[0]),
        test=problem.test,
        stop=options.stop,
        optimizer=options.optimizer,
        scored=problem.loss,
        left_out=left_out,
        left_out_before=distributed.from_first(start.strength.left_out if start.strength is not None else 0.0)[0],
    )


def _left_out(problem: Problem, start: Start, options: Options) -> LeftOut | None:
    """What a walk in γ asks; None where there is no walk, or some process cannot ask."""
    strength, loss, found = start.strength, problem.trained_on, None
    clipped = loss is not problem.loss  # and cannot be compared with the user's own
    if options.rules.held == "walk" and strength is not None and not clipped:
        numbers = not strength.classes
        found = leave_out(start.posterior, problem.batches, loss, start.n, options.seed, numbers=numbers)
    return None if distributed.largest(float(found is None)) else found


def _restored(trainer: Trainer, folder: RunFolder | None) -> list[Record]:
    """The history up to the last checkpoint, with the trainer of every process where it was then."""
    history: list[Record] = folder.restore(trainer) if folder is not None else []
    if distributed.world() == 1:
        return history
    tensors, values = trainer.state()
    values, history = distributed.document_from_first([values, history])
    if history:
        content = distributed.bytes_from_first(
            save_bytes({k: v.detach().cpu().contiguous() for k, v in tensors.items()})
        )
        if distributed.rank():
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
        if distributed.world() > 1:  # the others are elsewhere: what they hold is not what this process holds
            raise
        return True
    except TrainingError as error:
        if folder is not None and folder.has_checkpoint():
            raise TrainingError(f"{error}. The last good checkpoint is kept in {folder.path / 'checkpoint'}") from None
        raise
    return False


def _settle(trainer: Trainer, problem: Problem) -> None:
    """Bring the network to the state that is measured, and give back the memory that training took."""
    model = trainer.posterior.model
    distributed.same_weights(model)  # buffers follow the rows that a process has seen
    trainer.curvature = trainer.optimizer = None  # as large as the network, and no longer needed
    give_memory_back()
    estimate_batch_norm(model, problem.batches.ordered(), problem.loss)


def _write(folder: RunFolder, result: Result) -> None:
    """Write what the run ends with; `metrics.json` last, as the sign that it is complete."""
    folder.finish(result.model, result.posterior, result.earlier, result.certificate)
    metrics = result.metrics | {"notes": result.notes, "interrupted": result.interrupted}
    try:
        from pactrain.report.page import write_page  # here: drawing is slow to import, and only the end of a run draws

        write_page(folder.path, metrics)
    except Exception as error:  # a picture must not cost a run
        result.notes.append(f"The report could not be made ({error!r}); pactrain report {folder.path} tries again.")
    folder.complete(metrics, interrupted=result.interrupted)


def _teller(callbacks: Sequence[Callback]) -> Callback:
    def tell(event: Event) -> None:
        for callback in callbacks:
            callback(event)

    return tell
