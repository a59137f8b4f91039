"""How a step is computed: in which precision, in how many pieces, with what limit on its gradient."""

import itertools
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.batches import rows
from pactrain.problem.call_network import has_rows, rows_at
from pactrain.problem.losses import Loss, per_example
from pactrain.runtime import distributed
from pactrain.runtime.arguments import check_whole, is_real
from pactrain.runtime.errors import DataError, PactrainError, TrainingError

PRECISIONS = {
    "fp32": None,
    "32": None,
    "bf16": torch.bfloat16,
    "bfloat16": torch.bfloat16,
    "bf16-mixed": torch.bfloat16,
}
"""Precision by name; None leaves the network's own."""


@dataclass(frozen=True, kw_only=True)
class Computing:
    """How the loss of a training step and its gradient are computed.

    Attributes:
        precision: "bf16" for a forward pass under bfloat16 autocast; None or "fp32" for the network's own precision.
        accumulate: Pieces in which a batch goes through the network, its gradients added up: less memory, the same step.
        clip_norm: Largest Euclidean norm of a step's gradient; None for no limit.

    Raises:
        PactrainError: A value is not understood.
    """

    precision: str | None = None
    accumulate: int = 1
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        if self.precision is not None and self.precision not in PRECISIONS:
            raise PactrainError(
                f"precision={self.precision!r} is not known; use 'bf16' or 'fp32' (float16's range is too small for the stds)"
            )
        check_whole("accumulate", self.accumulate, 1)
        if self.clip_norm is not None and not (is_real(self.clip_norm) and self.clip_norm > 0):
            raise PactrainError(f"clip_norm={self.clip_norm!r} must be a number above zero, or None for no limit")

    def losses(self, loss: Loss, model: nn.Module, batch: Any) -> Tensor:
        """Per-example losses of a batch, in the precision that was asked for."""
        with self._autocast(next(model.parameters()).device):
            found = per_example(loss, model, batch)
        if not found.requires_grad:
            raise TrainingError(
                "the loss has no gradient with respect to the weights; look for detach(), torch.no_grad(), argmax or a conversion "
                "to numbers in the network and the loss"
            )
        return found

    def backward(self, loss: Loss, model: nn.Module, batch: Any) -> float:
        """Add the gradient of the batch's mean loss to the network's gradients; returns that mean."""
        mine = distributed.share(batch)
        if self.accumulate == 1:
            risk, value = distributed.mean_loss(self.losses(loss, model, mine))
            risk.backward()
            return value
        parts = pieces(mine, self.accumulate)
        total = torch.zeros((), dtype=torch.float64, device="cpu")
        count = float(distributed.add_up(total + sum(number for _, number in parts)))
        for part, _ in parts:
            summed = self.losses(loss, model, part).sum()
            (summed * (distributed.world() / count)).backward()
            total += summed.detach().double().cpu()
        return float(distributed.add_up(total)) / count

    def clip(self, params: list[nn.Parameter]) -> None:
        """Bring the gradient to its largest norm, if it is above it."""
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(params, self.clip_norm)

    def _autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        dtype = PRECISIONS[self.precision] if self.precision is not None else None
        return nullcontext() if dtype is None else torch.autocast(device.type, dtype, cache_enabled=False)


def pieces(batch: Any, count: int) -> list[tuple[Any, int]]:
    """A batch of tensors cut into at most `count` pieces of rows, each with its number of rows.

    Raises:
        DataError: The batch is not made of tensors with one row per example.
    """
    if not has_rows(batch):
        raise DataError(
            "accumulate= cuts batches into pieces, for which every part of a batch must be a tensor with one row per example"
        )
    n = rows(batch)
    count = min(count, n)
    edges = [n * i // count for i in range(count + 1)]
    return [(rows_at(batch, slice(a, b)), b - a) for a, b in itertools.pairwise(edges) if b > a]
