"""Evaluation at the end: all that can be said about a trained posterior, in one record.

One δ is the whole budget.  It is shared out evenly among the events that may fail: the kl bound with each way of paying for
the learned prior, for the 0-1 error and for the clipped loss; the bound for the unbounded loss; the one drawn network; the
test set.  The bounds hold for all posteriors at once, so that the end of stage 1 costs nothing more but its own measuring.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.bounds.prior_price import priced_priors
from pactrain.certification.audit import data_caveats, digest_data, digest_tensors, distinct
from pactrain.certification.caveats import dropout_note, leaks, model_caveats
from pactrain.certification.certificate import Certificate
from pactrain.certification.prior_check import prior_caveats
from pactrain.certification.risks import clip_range, first_measured
from pactrain.certification.statement import END, RANK, Caveat
from pactrain.certification.statements import Scene, about, held_out_statements, heuristics
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.batches import Batches, as_batches, check_columns
from pactrain.problem.constant_answer import best_constant
from pactrain.problem.input_types import as_network_takes
from pactrain.problem.losses import AnyLoss, Loss, resolve
from pactrain.problem.module_modes import evaluating
from pactrain.problem.threads import threads_for
from pactrain.runtime.devices import fresh_casts
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.events import Callback, silent
from pactrain.runtime.versions import versions

DRAWS = 2000
"""Independent draws with which the risk is measured unless the user asks for more."""


def certify(
    posterior: Posterior,
    data: Any,
    *,
    loss: str | AnyLoss | None = None,
    delta: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
    test: Any = None,
    caveats: Sequence[str | Caveat] = (),
    remarks: Sequence[str] = (),
    test_doubts: Sequence[str] = (),
    earlier: Mapping[str, Snapshot] | None = None,
    objective: Mapping[str, float] | None = None,
    progress: Callback = silent,
) -> Certificate:
    """State all that can be said about the randomised predictor `posterior` from its training data.

    draws:       independent draws with which the risk is measured; more give smaller numbers, at most by the price of measuring.
    test:        data never used in training: adds the test-set bound for the mean network.
    caveats:     reasons why the assumptions cannot be taken for granted; each is printed, and takes labels away.
    remarks:     anything else that should be printed with the numbers.
    test_doubts: reasons why the test rows may have had a say in the training; the test set then proves nothing.
    earlier:     posteriors of earlier moments of the same training (such as the end of stage 1) to be stated as well.
    objective:   terms of the training objective (risk, kl_term, complexity and the constants of η), stated as heuristics.
    """
    if not 0 < delta < 1:
        raise PactrainError(f"delta={delta} must lie strictly between 0 and 1; 0.05 means 95 % confidence")
    if draws < 1:
        raise PactrainError(f"draws={draws}: the risk has to be measured with at least one draw of the weights")
    batches, held_out, loss, copies = _read(posterior, data, test, loss)
    given = [c if isinstance(c, Caveat) else Caveat(c) for c in caveats]
    reasons = [*given, *model_caveats(posterior.model), *data_caveats(batches)]
    constant = best_constant(batches, loss, like=_output(posterior.model, batches, loss))
    with evaluating(posterior.model):
        reasons += prior_caveats(posterior, batches, loss, constant, seed=seed)
    events = _events(loss, list(priced_priors(posterior)), held_out is not None)
    scene = Scene(
        posterior,
        batches,
        loss,
        constant,
        draws,
        seed,
        progress,
        min((c.label for c in reasons), key=RANK.__getitem__, default="certified"),
        delta / len(events),
        1 + len(earlier or {}),
    )
    model = posterior.model
    with evaluating(model), fresh_casts(), threads_for(model, first_measured(posterior, batches, loss), loss):
        statements, measured, notes = about(scene, END)
        for when, snapshot in (earlier or {}).items():
            now = posterior.snapshot()
            posterior.restore(snapshot)
            statements += about(scene, when)[0]
            posterior.restore(now)
        if held_out is not None:
            others = [c.reason for c in data_caveats(held_out) if c not in reasons]
            doubts = [*test_doubts, *leaks(batches, held_out), *others]
            statements += held_out_statements(scene, held_out, doubts)
            notes = [*doubts, *notes]
    statements += heuristics(objective)
    return Certificate(
        statements=tuple(statements),
        delta=delta,
        n=int(measured["n"]),
        loss=loss.name if isinstance(loss, Loss) else "custom",
        seed=seed,
        prior_source=posterior.prior_source or "",
        caveats=tuple(reasons),
        notes=(*copies, *remarks, *dropout_note(posterior.model), *notes),
        budget={event: delta / len(events) for event in events},
        measured=measured,
        hashes=hashes_of(posterior, batches, held_out),
        versions=versions(),
    )


def _output(model: nn.Module, batches: Batches, loss: AnyLoss) -> Tensor | None:
    """The network's output on a batch, from which its shape and type are seen."""
    if not isinstance(loss, Loss):
        return None
    with evaluating(model), torch.no_grad():
        return loss.read(model, next(iter(batches.ordered())))[0]


def _read(
    posterior: Posterior, data: Any, test: Any, loss: str | AnyLoss | None
) -> tuple[Batches, Batches | None, AnyLoss, list[str]]:
    """The data and the held-out data as the network takes them, copies of rows left out; the loss; notes on copies."""
    device, dtype = posterior.log_std.device, posterior.means()[0].dtype
    found: list[Batches] = []
    notes = []
    for source, role in ((data, "training"), (test, "test")):
        if source is None:
            continue
        batches = as_batches(source, batch_size=None, device=device, dtype=dtype, role=role)
        first = next(iter(batches.ordered()), None)
        if first is None:
            raise DataError(f"the {role} data has no batch: nothing can be said without examples")
        loss = resolve(loss, first)
        if batches is not source:
            as_network_takes(posterior.model, batches, loss)
        batches, copies = distinct(batches)
        if copies:
            notes.append(f"{copies:,} {role} rows are copies of others, so they are neither measured nor counted here")
        found.append(batches)
    assert loss is not None
    assert not isinstance(loss, str)
    if test is not None:
        check_columns(*found)
    return found[0], found[1] if test is not None else None, loss, notes


def hashes_of(posterior: Posterior, batches: Batches, held_out: Batches | None) -> dict[str, str]:
    """Fingerprints of the data, the prior and the posterior that a certificate is about."""
    units = [] if posterior.units is None else [posterior.units]
    return {
        "data": digest_data(batches),
        **({} if held_out is None else {"test": digest_data(held_out)}),
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
