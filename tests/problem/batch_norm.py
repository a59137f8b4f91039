"""A network with BatchNorm, a problem for it, and rules for a short training."""

from typing import Any

import torch
from torch import Tensor, nn

from pactrain.rules.rules import Rules


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def task() -> tuple[Tensor, Tensor]:
    x = torch.randn(48, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0, 2:4, 2:4].mean((1, 2)) > 0).long()


def short(rules: Rules, **changes: Any) -> Rules:
    return rules.replace(batch_size=16, fixed_epochs=3, draws=2, stage2_share=0.0, **changes)
