"""The certificate of a training that went block by block: every block judged a network that had not seen it.

The statement is about the networks that were judged, and no divergence enters, so that neither BatchNorm's statistics nor buffers
nor the number of weights matter.
"""

from collections.abc import Sequence

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from pactrain.bounds.progressive import Block, blocks_text
from pactrain.certification.certificate import Certificate
from pactrain.certification.in_parts import InParts
from pactrain.certification.measures import ERROR
from pactrain.certification.statement import PROGRESSIVE, SEQUENCE, Caveat, Label, Statement, statement


def progressive_certificate(trained: InParts, blocks: Sequence[Block]) -> Certificate:
    """State what the blocks prove.

    Args:
        trained: The training.
        blocks: Number of examples and errors of each block; the first is not counted.

    Returns:
        The certificate; without a statement if training ended before any block was counted.
    """
    n = sum(rows for rows, _ in blocks[1:])

    def state(label: Label, trivial: float | None) -> list[Statement]:
        inputs = {"blocks": blocks_text(blocks), "n": n, "delta_bound": trained.delta}
        return (
            [statement(ERROR, SEQUENCE, label, PROGRESSIVE, inputs, constant_answer=trivial)] if len(blocks) > 1 else []
        )

    return trained.certificate(PROGRESSIVE, n, _judged_together(trained.posterior.model), state)


def _judged_together(model: nn.Module) -> list[Caveat]:
    """A caveat for layers that take their statistics from the rows that are predicted together."""
    by_itself = nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d  # normalises each row by itself
    norms = [m for m in model.modules() if isinstance(m, _NormBase) and not isinstance(m, by_itself)]
    reason = (
        "BatchNorm without running statistics makes predictions depend on the other rows of a batch; let it keep them"
    )
    return [Caveat(reason)] if any(not m.track_running_stats for m in norms) else []
