"""Small posteriors, data for them, and what statements share."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.certification.statement import Label
from pactrain.certification.subject import Rows, Subject
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import CallableLoss
from pactrain.runtime.events import silent
from tests.zoo import build

Data = tuple[Tensor, Tensor]


def trained() -> Posterior:
    """A posterior a little away from its prior."""
    posterior = Posterior(build("mlp"), Prior(std=0.05))
    with torch.no_grad():
        posterior.log_std.sub_(0.2)
        posterior.prior_log_std.add_(0.033)
    return posterior


class Product(nn.Module):
    """Two classes from a product of weights that are not those of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(2, 2)), nn.Parameter(torch.randn(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.left @ self.right


def classes(n: int, seed: int = 0) -> Data:
    """Two classes that overlap, a third and two thirds."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g)
    return x, (x[:, 0] + torch.randn(n, generator=g) > 0.6).long()


def noise(n: int) -> Data:
    """Two classes that have nothing to do with the inputs."""
    g = torch.Generator().manual_seed(0)
    return 3 * torch.randn(n, 2, generator=g), torch.randint(0, 2, (n,), generator=g)


def noisy_posterior(model: nn.Module, std: float = 4.0) -> Posterior:
    """Much noise, of another size for each weight."""
    posterior = Posterior(model.eval(), Prior(std=std))
    with torch.no_grad():
        posterior.log_std.add_(torch.linspace(-1, 0, posterior.num_weights))
    return posterior


def mlp(*, bias: bool = True) -> nn.Module:
    """All of its random weights in linear layers."""
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2, bias=bias))


def cross_entropy(predict: Callable[..., Tensor], batch: Data) -> Tensor:
    """A callable, which has no constant answer and no range."""
    return F.cross_entropy(predict(batch[0]), batch[1], reduction="none")


def subject_of(
    n: int = 120,
    *,
    shift: float = 0.0,
    label: Label = "certified",
    batches: TensorBatches | None = None,
    **changes: Any,
) -> Subject:
    """A network at its prior, or `shift` away from it in its only random weights: KL = shift²."""
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    posterior = Posterior(model, Prior(std=0.5, learn=False))
    with torch.no_grad():
        model.weight[0].add_(shift * 0.5)
    batches = batches or TensorBatches(classes(n), n)
    given: dict[str, Any] = {
        "posterior": posterior,
        "loss": CallableLoss.of(cross_entropy),
        "constant": None,
        "seed": 0,
    }
    given |= {"rows": Rows(batches, batches, batches), "classes": 2, "label": label, "delta": 0.04, "draws": 10}
    return Subject(**given | {"progress": silent} | changes)
