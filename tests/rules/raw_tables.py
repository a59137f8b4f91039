"""Tables with columns and targets of any size, and a network for them."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read import Problem
from pactrain.problem.read_data import as_batches
from pactrain.rules.choose_units import LARGEST

EACH = math.log(2 * LARGEST + 1)


def perceptron(inputs: int = 4, outputs: int = 3) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 20), nn.ReLU(), nn.Linear(20, outputs))


def table(rows: int = 120, *, numbers: bool = False) -> tuple[Tensor, Tensor]:
    """Columns around 700, 10, 1 and .02; classes, or numbers around 200, that depend on all of them."""
    source = torch.Generator().manual_seed(1)
    z = torch.randn(rows, 4, generator=source)
    x = (z + 2) * torch.tensor([350.0, 5.0, 0.5, 0.01])
    if numbers:
        return x, 200 + 50 * z.sum(1)
    return x, (z.sum(1) > 0).long() + (z[:, 0] > 1)


def problem(x: Tensor, y: Tensor, loss: Loss = LOSSES["cross_entropy"]) -> Problem:
    batches = as_batches((x, y), batch_size=32, device=torch.device("cpu"))
    return Problem(batches, None, next(iter(batches.ordered())), loss, loss)
