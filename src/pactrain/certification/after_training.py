"""Making the certificate of a finished training, and the facts about the training that it states."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from pactrain.certification.before_training import Described
from pactrain.certification.caveats import buffer_caveats, counting_remarks, rows_remarks, weight_remarks
from pactrain.certification.certificate import Certificate
from pactrain.certification.certify import Background, certify
from pactrain.certification.data_checks import row_digests
from pactrain.certification.in_parts import InParts
from pactrain.certification.in_units import losses_in_units, named_in_units, take_over, unit_remarks
from pactrain.certification.progressive import progressive_certificate
from pactrain.certification.recursive import recursive_certificate
from pactrain.certification.risks import affordable_draws
from pactrain.certification.statement import Caveat
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.read import Problem
from pactrain.rules.initial_scale import RESCALED_REMARK
from pactrain.runtime.events import Callback, silent
from pactrain.training.options import Options
from pactrain.training.time_left import affordable_rows
from pactrain.training.train import Trained

INTERRUPTED_DOUBT = "training was interrupted by hand while the test score could be seen, so the test set proves nothing about this network"

RETURNED_REMARK = "training on the counted rows did not lower the certified error, so the network is delivered as the prior's rows alone gave it"


@dataclass(frozen=True)
class Certified:
    """A finished training with its certificate.

    Attributes:
        trained: The training.
        certificate: What was proved.
        facts: What the certificate states besides data and weights.
        earlier: Posteriors of earlier moments of training that the certificate speaks of.
    """

    trained: Trained
    certificate: Certificate
    facts: dict[str, Any]
    earlier: dict[str, Snapshot]


def certify_training(trained: Trained, doubts: Sequence[Caveat], stated: Described) -> Certified:
    """Bring the posterior into the units of the data, and certify it.

    With a prior from rows of its own, the network that those rows gave may have the smaller certified error: the posterior then goes
    back to the prior, so that this network is the one that is delivered.

    Args:
        trained: The training; its network takes the data as it came.
        doubts: Reasons for doubt that were found before training.
        stated: The data, with the reasons for doubt that the caller stated.
    """
    start, options = trained.start, trained.start.options
    posterior, given = start.posterior, start.scaled.given
    if given.prior_rows is not None:
        posterior.prior_rows = torch.from_numpy(row_digests(given.prior_rows).view(np.int64))
    buffers = [] if options.certificate == "progressive" else buffer_caveats(posterior.model, start.buffers)
    caveats = [*doubts, *buffers, *map(Caveat, trained.unit_doubts), *_changed_by_callbacks(options)]
    earlier = take_over(start.scaled.units, posterior, trained.trainer.stage1_end)
    certified_problem = replace(given, test=None) if trained.unit_doubts else given
    facts = facts_of(trained, certified_problem, caveats, stated.test_doubts)
    certify_now = partial(
        certificate_of,
        posterior,
        certified_problem,
        delta=options.delta,
        seed=options.seed,
        caveats=stated.caveats,
        progress=options.notify,
    )
    certificate = certify_now(facts, earlier=earlier)
    if certificate.prefers_prior():
        posterior.return_to_prior()
        earlier, facts = {}, facts | {"remarks": [*facts["remarks"], RETURNED_REMARK], "objective": {}}
        certificate = certify_now(facts, earlier=earlier)
    return Certified(trained, certificate, facts, earlier)


def _changed_by_callbacks(options: Options) -> list[Caveat]:
    """A caveat where rows judge networks that must not have seen them, and a callback may have shown them."""
    if not options.changed or (options.certificate == "standard" and not options.prior_data):
        return []
    return [
        Caveat(
            f"a callback changed the network (in the phase {options.changed[0]!r}), and may have trained it on rows that are to judge it; "
            "let callbacks only look"
        )
    ]


def facts_of(
    trained: Trained, certified_problem: Problem, caveats: Sequence[Caveat], test_doubts: Sequence[str]
) -> dict[str, Any]:
    """What a certificate states besides data and weights, as plain values: with it the certificate can be made again."""
    start, progress, units = trained.start, trained.trainer.progress, trained.start.scaled.units
    n, epochs, steps = start.untrained.n, progress.epoch, progress.step
    rows, passes = affordable_rows(start.options, n, start.seconds_per_pass)
    draws = affordable_draws(
        start.posterior, certified_problem.batches, certified_problem.loss, n, epochs=epochs, steps=steps, passes=passes
    )
    rescaled = [RESCALED_REMARK] if start.layers_rescaled else []
    return {
        "draws": draws,
        "rows": None if rows is None else [rows, n],
        "caveats": [asdict(c) for c in caveats],
        "remarks": [
            *unit_remarks(units),
            *counting_remarks(certified_problem.batches),
            *weight_remarks(certified_problem.loss),
            *rows_remarks(rows, n),
            *rescaled,
        ],
        "test": certified_problem.test is not None,
        "test_doubts": [*test_doubts, *([INTERRUPTED_DOUBT] if trained.interrupted else [])],
        "objective": dict(trained.objective),
        "target_unit": units.target,
        "loss_degree": units.degree,
        "blocks": trained.blocks if start.options.certificate == "progressive" else None,
        "levels": trained.blocks if start.options.certificate == "recursive" else None,
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
    loss = losses_in_units(problem.loss, facts["target_unit"])
    reasons = [*map(Caveat.of, caveats), *(Caveat(**c) for c in facts["caveats"])]
    blocks, levels = facts["blocks"], facts.get("levels")  # older runs have no levels
    if blocks is not None or levels is not None:
        batches = problem.batches if levels is None else problem.grown(len(problem.blocks)).batches
        trained = InParts(
            posterior=posterior, batches=batches, loss=loss, delta=delta, seed=seed, caveats=reasons, remarks=facts["remarks"]
        )  # fmt: skip
        if levels is not None:
            return recursive_certificate(trained, levels)
        return progressive_certificate(trained, [(n, errors) for n, errors in blocks])
    made = certify(
        posterior,
        problem.batches,
        loss=loss,
        delta=delta,
        draws=facts["draws"],
        seed=seed,
        test=problem.test if facts["test"] else None,
        caveats=reasons,
        background=Background(facts["remarks"], facts["test_doubts"], earlier, facts["objective"], facts.get("rows")),
        progress=progress,
    )
    return named_in_units(made, facts["target_unit"], facts["loss_degree"])
