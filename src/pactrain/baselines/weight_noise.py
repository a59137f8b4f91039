"""Gaussian noise in the weights, with which plain training regularises."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from pactrain.problem.module_modes import restored_values


@contextmanager
def noisy(weights: Sequence[nn.Parameter], std: float, generator: torch.Generator) -> Iterator[None]:
    """Gaussian noise in the weights inside the block; the very same bits as before come back."""
    if not std:
        yield
        return
    values = [w.detach() for w in weights]
    with restored_values(values):
        for v in values:
            v.add_(torch.randn(v.shape, generator=generator, device=v.device, dtype=v.dtype), alpha=std)
        yield
