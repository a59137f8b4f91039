"""The certificate of a training that went block by block: every block judged a network that had not seen it.

One statement, which takes the whole of δ.  It is about the networks that were judged, and no divergence enters, so that neither
BatchNorm's statistics nor buffers nor the number of weights matter.
"""

from collections.abc import Sequence

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from pactrain.bounds.progressive import Block, blocks_text
from pactrain.certification.caveats import dropout_note
from pactrain.certification.certificate import Certificate
from pactrain.certification.certify import hashes_of
from pactrain.certification.data_checks import copied_rows, data_caveats
from pactrain.certification.measures import ERROR
from pactrain.certification.prior_check import prior_caveats
from pactrain.certification.statement import PROGRESSIVE, RANK, SEQUENCE, Caveat, Label, Statement, statement
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import ConstantAnswer, best_constant
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating
from pactrain.runtime.versions import versions


def progressive_certificate(
    posterior: Posterior,
    batches: Batches,
    loss: Loss,
    blocks: Sequence[Block],
    *,
    delta: float,
    seed: int,
    caveats: Sequence[Caveat],
    remarks: Sequence[str],
) -> Certificate:
    """State what the blocks prove.

    Args:
        posterior: The distribution at the end of training, for its fingerprint and the check of the initial weights.
        batches: All examples that were trained on, in their order.
        loss: The user's own loss.
        blocks: Number of examples and errors of each block; the first is not counted.
        delta: Probability with which the statement may fail.
        seed: Of the run.
        caveats: Reasons why the assumptions cannot be taken for granted.
        remarks: Anything that should be printed with the numbers.

    Returns:
        The certificate; without a statement if training ended before any block was counted.
    """
    model, constant = posterior.model, best_constant(batches, loss)
    with evaluating(model):
        initial = prior_caveats(posterior, batches, loss, constant, seed=seed, advice="build the network anew")
    reasons = [*caveats, *data_caveats(batches), *copies(batches), *_judged_together(model), *initial]
    return Certificate(
        statements=tuple(_statements(blocks, reasons, constant, delta)),
        delta=delta,
        n=sum(n for n, _ in blocks[1:]),
        loss=loss.name,
        seed=seed,
        prior_source=posterior.prior_source or "",
        caveats=tuple(reasons),
        notes=(*remarks, *dropout_note(model)),
        budget={PROGRESSIVE: delta},
        hashes=hashes_of(posterior, batches, None),
        versions=versions(),
    )


def _statements(
    blocks: Sequence[Block], reasons: Sequence[Caveat], constant: ConstantAnswer | None, delta: float
) -> list[Statement]:
    if len(blocks) < 2:
        return []
    label: Label = min((c.label for c in reasons), key=RANK.__getitem__, default="certified")
    inputs = {"blocks": blocks_text(blocks), "n": sum(n for n, _ in blocks[1:]), "delta_bound": delta}
    trivial = None if constant is None else constant.error
    return [statement(ERROR, SEQUENCE, label, PROGRESSIVE, inputs, constant_answer=trivial)]


def copies(batches: Batches) -> list[Caveat]:
    """A caveat if a block may hold copies of rows that the network was trained on before."""
    copies = copied_rows(batches.table) if batches.table is not None else []
    return (
        [Caveat(f"{len(copies):,} rows are copies of others, so blocks are not new to the network; remove them")]
        if copies
        else []
    )


def _judged_together(model: nn.Module) -> list[Caveat]:
    """A caveat for layers that take their statistics from the rows that are predicted together."""
    together = any(
        isinstance(m, _NormBase) and not m.track_running_stats and not _by_itself(m) for m in model.modules()
    )
    reason = (
        "BatchNorm without running statistics makes predictions depend on the other rows of a batch; let it keep them"
    )
    return [Caveat(reason)] if together else []


def _by_itself(layer: nn.Module) -> bool:
    """True for layers that normalise each row by itself."""
    return isinstance(layer, nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d)
