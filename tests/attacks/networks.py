"""Networks and rows that the attacks share."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain import Certificate

Rows = tuple[Tensor, Tensor]

ABOUT_TRAINING_ROWS = (
    "kl",
    "bernstein",
    "disintegrated",
    "counted rows",
    "progressive",
    "unbounded (cgf)",
    "unbounded (paper)",
)


def network(inputs: int = 20, outputs: int = 2, *, seed: int = 0, width: int = 64) -> nn.Sequential:
    """A fresh network of two layers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


def coin_flips(n: int = 300, *, classes: int = 2, seed: int = 0) -> Rows:
    """Random rows with random labels: whatever a network learns of them, its true error is that of guessing."""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 20, generator=g), torch.randint(0, classes, (n,), generator=g)


def separable(n: int = 600, *, inputs: int = 20, seed: int = 0) -> Rows:
    """Two classes that lie far apart."""
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    return torch.randn(n, inputs, generator=g) + 3.0 * (2 * y[:, None] - 1) * (torch.arange(inputs) < 3), y


def memorise(model: nn.Module, rows: Rows, steps: int = 200) -> nn.Module:
    """Train without pactrain until the labels are known by heart."""
    x, y = rows
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert float((model(x).argmax(1) == y).float().mean()) == 1
    return model


def labels_of(certificate: Certificate, *bounds: str) -> set[str]:
    """Labels of the statements with these bounds; without any, of all about the training rows."""
    return {s.label for s in certificate.statements if s.bound in (bounds or ABOUT_TRAINING_ROWS)}


def headline(certificate: Certificate) -> str:
    """The first line that is printed."""
    return str(certificate).splitlines()[0]


NOTHING = "Nothing is claimed about this network on new data."
