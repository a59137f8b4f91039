"""Problems on which γ is searched for."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pactrain.rules.presets import AUTO

SHORT = AUTO.replace(fixed_epochs=16)


def wrongly_labelled() -> tuple[Tensor, Tensor]:
    """300 digits, 40 % of them with a label at random."""
    digits = load_digits()
    x, y = torch.tensor(digits.data[:300] / 16, dtype=torch.float32), torch.tensor(digits.target[:300])
    source = torch.Generator().manual_seed(0)
    wrong = torch.rand(300, generator=source) < 0.4
    return x, torch.where(wrong, torch.randint(10, (300,), generator=source), y)


def problem(wrong: float) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(120, 10, generator=source)
    y = (x[:, 0] + x[:, 1] > 0).long()
    flipped = torch.rand(len(y), generator=source) < wrong
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2)), (x, torch.where(flipped, 1 - y, y))
