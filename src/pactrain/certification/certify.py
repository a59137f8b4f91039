"""`certify`: all that can be stated about a trained posterior, in one record.

One δ is the whole budget, shared out among the events that may fail (`Subject.budget`).  What is only estimated has no part in it.  The
bounds hold for all posteriors at once, so that the end of stage 1 costs nothing more but its own measuring.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.certification.caveats import dropout_note, leaks, model_caveats, prior_rows_counted
from pactrain.certification.certificate import Certificate
from pactrain.certification.data_checks import data_caveats, digest_data, digest_tensors, distinct
from pactrain.certification.make_statements import about, counted_statements, held_out_statements, heuristics
from pactrain.certification.prior_check import prior_caveats
from pactrain.certification.risks import first_measured
from pactrain.certification.statement import END, Caveat, Statement, best_label
from pactrain.certification.subject import Rows, Subject
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import ConstantAnswer, best_constant
from pactrain.problem.input_types import as_network_takes
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.problem.module_modes import evaluating
from pactrain.problem.read_data import as_batches, check_columns
from pactrain.problem.threads import threads_for
from pactrain.problem.untrained import shapes_named
from pactrain.runtime.arguments import check_seed, check_share, check_texts, check_whole
from pactrain.runtime.devices import fresh_casts
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.events import Callback, silent
from pactrain.runtime.files import plain
from pactrain.runtime.seeds import derive
from pactrain.runtime.versions import versions

DRAWS = 2000
"""Independent draws with which the risk is measured unless the user asks for more."""


@dataclass(frozen=True)
class Background:
    """What a training adds to a certificate of its posterior.

    Attributes:
        remarks: Anything that should be printed with the numbers.
        test_doubts: Reasons why the test rows may have had a say in the training; the test set then proves nothing.
        earlier: Posteriors of earlier moments of the training (such as the end of stage 1), to be stated as well.
        objective: Terms of the training objective (risk, kl_term, complexity and the constants of η), stated as heuristics.
        rows: How many examples the risk is measured on, and of how many, where there is no time for all.
    """

    remarks: Sequence[str] = ()
    test_doubts: Sequence[str] = ()
    earlier: Mapping[str, Snapshot] = field(default_factory=dict)
    objective: Mapping[str, float] = field(default_factory=dict)
    rows: tuple[int, int] | None = None


NO_BACKGROUND = Background()


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
    background: Background = NO_BACKGROUND,
    progress: Callback = silent,
) -> Certificate:
    """State all that can be said about the randomised predictor `posterior` from its training data.

    Args:
        posterior: The distribution over the network's weights.
        data: The examples that the bound counts.
        loss: A name, a function, or None for the usual loss of such targets.
        delta: Probability with which the statements may fail, all together.
        draws: Independent draws with which the risk is measured; more give smaller numbers, at most by the price of measuring.
        seed: Decides the draws.
        test: Data never used in training: adds the test-set bound for the mean network.
        caveats: Reasons why the assumptions cannot be taken for granted; each is printed, and takes labels away.
        background: What the training adds.
        progress: Hears of every part that has been measured.

    Returns:
        The certificate.

    Raises:
        PactrainError: An argument is out of its range, or the data does not fit the network.

    Example:
        >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> certificate = certify(Posterior(nn.Linear(3, 2)), (X, (X[:, 0] > 0).long()), draws=50)
        >>> certificate.n, certificate.recheck()
        (64, True)
    """
    delta = check_share("delta", delta, "0.05 means 95 % confidence")
    check_whole("draws", draws, 1)
    seed = check_seed(seed)
    check_texts("caveats", caveats, (str, Caveat), "'the rows are not independent'")
    if not isinstance(posterior, Posterior):
        raise PactrainError(f"certify takes a pactrain.Posterior, not {type(posterior).__name__}; `fit` returns one")
    (rows, chosen), model = _read(posterior, data, test, loss), posterior.model
    rows, given = _some(rows, background.rows, seed), list(map(Caveat.of, caveats))
    reasons = [*given, *model_caveats(model), *data_caveats(rows.counted), *prior_rows_counted(posterior, rows.counted)]
    output = _output(model, rows, chosen)
    constant = best_constant(rows.measured, chosen, like=output)
    with evaluating(model):
        reasons += prior_caveats(posterior, rows.measured, chosen, constant, seed=seed)
    subject = Subject(
        posterior=posterior, rows=rows, loss=chosen, constant=constant, classes=_classes(output, chosen, constant),
        draws=1 if rows.of is not None else draws,  # of rows chosen at random one pass: a second one would depend on it
        label=best_label(reasons), delta=delta, seed=seed, progress=progress, earlier=len(background.earlier),
    )  # fmt: skip
    return _certificate(subject, reasons, background)


def _some(rows: Rows, wanted: tuple[int, int] | None, seed: int) -> Rows:
    """Measure on some of the rows; the user's own batches are then not read as a whole."""
    if wanted is None:
        return rows
    some, table = rows.counted.sample(wanted[0], derive(seed, "measured rows")), rows.counted.table
    if table is None:
        held_out = None if rows.held_out is None else rows.held_out.sample(wanted[0], derive(seed, "held-out rows"))
        return replace(rows, counted=some, held_out=held_out, measured=some, of=wanted[1])
    return replace(rows, measured=some, of=len(table)) if wanted[0] < len(table) else rows


def _certificate(subject: Subject, reasons: list[Caveat], background: Background) -> Certificate:
    """Measure, and put everything together."""
    posterior, rows = subject.posterior, subject.rows
    found, measured, notes = _statements(subject, reasons, background)
    statements = [s for s in found if plain(asdict(s)) == asdict(s)]
    if len(statements) < len(found):
        notes.append(
            f"{len(found) - len(statements)} statements are left out: their numbers are not finite; the network's weights or "
            "losses are too large"
        )
    return Certificate(
        statements=tuple(statements),
        delta=subject.delta,
        n=int(measured["n"]),
        loss=subject.loss.name,
        seed=subject.seed,
        prior_source=posterior.prior_source or "",
        caveats=tuple(reasons),
        notes=(*rows.notes, *background.remarks, *dropout_note(posterior.model), *notes),
        budget=dict(subject.budget),
        measured=plain(measured),
        hashes=hashes_of(posterior, rows.counted, rows.held_out),
        versions=versions(),
    )


def _statements(
    subject: Subject, reasons: list[Caveat], background: Background
) -> tuple[list[Statement], dict[str, Any], list[str]]:
    """The statements, what was measured for the first of them, and notes."""
    posterior, batches, held_out, loss = subject.posterior, subject.rows.measured, subject.rows.held_out, subject.loss
    model = posterior.model
    with evaluating(model), fresh_casts(), threads_for(model, first_measured(posterior, batches, loss), loss):
        statements, measured, notes = about(subject, END)
        for when, snapshot in background.earlier.items():
            now = posterior.snapshot()
            posterior.restore(snapshot)
            statements += about(subject, when)[0]
            posterior.restore(now)
        statements += counted_statements(subject)
        if held_out is not None:
            others = [c.reason for c in data_caveats(held_out) if c not in reasons]
            doubts = [*background.test_doubts, *leaks(batches, held_out), *others]
            statements += held_out_statements(subject, held_out, doubts)
            notes = [*doubts, *notes]
    return statements + heuristics(background.objective), measured, notes


def _output(model: nn.Module, rows: Rows, loss: Loss) -> Tensor | None:
    """The network's output on a batch, from which its shape and type are seen."""
    if not loss.of_outputs:
        return None
    first = next(iter(rows.counted.ordered()))
    with shapes_named(first), evaluating(model), torch.no_grad():
        return loss.read(model, first)[0]


def _classes(output: Tensor | None, loss: Loss, constant: ConstantAnswer | None) -> int:
    """How many classes are told apart; 0 where a row has several to tell, or none."""
    if output is None or output.ndim != 2 or constant is None or constant.several or loss.task != "classification":
        return 0
    return output.shape[1]


def _read(posterior: Posterior, data: Any, test: Any, loss: str | AnyLoss | None) -> tuple[Rows, Loss]:
    """The data and the held-out data as the network takes them, copies of rows left out; and the loss."""
    device, dtype = posterior.log_std.device, posterior.means()[0].dtype
    found: list[Batches] = []
    chosen: Loss | None = None
    notes = []
    for source, role in ((data, "training"), (test, "test")):
        if source is None and role == "test":
            continue
        batches = as_batches(source, batch_size=None, device=device, dtype=dtype, role=role)
        first = next(iter(batches.ordered()), None)
        if first is None:
            raise DataError(f"the {role} data has no batch: nothing can be said without examples")
        chosen = chosen or as_loss(loss, first, posterior.model)
        if batches is not source:
            as_network_takes(posterior.model, batches, chosen)
        batches, copies = distinct(batches)
        if copies:
            notes.append(f"{copies:,} {role} rows are copies of others, so they are neither measured nor counted here")
        found.append(batches)
    assert chosen is not None
    if test is not None:
        check_columns(found[0], found[1])
    return Rows(found[0], found[0], found[1] if test is not None else None, tuple(notes)), chosen


def hashes_of(posterior: Posterior, batches: Batches, held_out: Batches | None) -> dict[str, str]:
    """Fingerprints of the data, the prior and the posterior that a certificate is about."""
    units = [] if posterior.units is None else [posterior.units]
    return {
        "data": digest_data(batches),
        **({} if held_out is None else {"test": digest_data(held_out)}),
        "prior": digest_tensors([posterior.prior_mean, *units]),
        "posterior": digest_tensors([*posterior.means(), posterior.log_std, posterior.prior_log_std]),
    }
