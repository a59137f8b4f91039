"""Reading out what a network's features know of the labels: with a new last layer it answers by chance, whatever the other layers know.

Ridge regression from the inputs of the last layer to the targets is fitted on one half of some examples, and judged by the other half.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import hooked

RIDGE = 0.1
"""Weight of the ridge, relative to the features' mean square."""

CLEARLY = 3.1
"""Standard errors that chance exceeds once in a thousand times."""

FEWEST = 20
"""Examples below which nothing is read out: guessing ten of ten is once in a thousand times a matter of chance, too."""

Layer = nn.Linear | nn.modules.conv._ConvNd


def read_out(model: nn.Module, subset: list[Any], loss: Loss) -> tuple[Tensor, Tensor] | None:
    """Squared errors on the examples of the second half: those of the read-out, and those of the first half's mean.

    Args:
        model: The network, in eval mode.
        subset: Batches of the examples.
        loss: The user's own loss, which knows the targets.

    Returns:
        Both, or None where the features of an example, or its one target, cannot be told, or examples are too few.
    """
    met: list[Any] = []

    def notice(_: nn.Module, args: Any, __: Any) -> None:
        met[:] = args

    features, targets = [], []
    with hooked((m, notice) for m in model.modules() if isinstance(m, Layer)):
        for batch in subset:
            met.clear()
            target = loss.read(model, batch)[1]
            if not met or met[0].ndim < 2 or len(met[0]) != len(target):
                return None
            features.append(met[0].flatten(1).double())
            targets.append(target if target.ndim == 1 else target.flatten(1))
    if any(t.ndim != targets[0].ndim for t in targets) or (targets[0].ndim > 1 and loss.task == "classification"):
        return None
    if sum(map(len, targets)) < FEWEST:
        return None
    x, y = torch.nan_to_num(torch.cat(features)), torch.cat(targets)
    y = F.one_hot(y.long() - int(y.min())) if loss.task == "classification" else y[:, None] if y.ndim == 1 else y
    return _squares(x, y.double())


def _squares(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    half = len(x) // 2
    centre, spread = x[:half].mean(0), x[:half].std(0)
    x = torch.where(spread > 0, (x - centre) / spread.clamp(min=torch.finfo(x.dtype).tiny), 0.0) / x.shape[1] ** 0.5
    mean = y[:half].mean(0)
    inner = x @ x[:half].T
    ridge = RIDGE * torch.eye(half, dtype=x.dtype, device=x.device)
    answers = mean + inner[half:] @ torch.linalg.solve(inner[:half] + ridge, y[:half] - mean)
    return (answers - y[half:]).square().sum(1), (mean - y[half:]).square().sum(1)


def clearly_better(mine: Tensor, other: Tensor) -> bool:
    """True if the one's errors are below the other's, on the same examples, by more than chance allows."""
    gain = other - mine
    return bool(gain.mean() > CLEARLY * gain.std(correction=0) / len(gain) ** 0.5)
