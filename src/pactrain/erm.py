"""Plain training, for comparison: the mean loss minimised by a torch optimiser, with the classical regularisers."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from pactrain.batches import TensorBatches, as_batches
from pactrain.errors import TrainingError
from pactrain.losses import AnyLoss, per_example, resolve
from pactrain.modes import restored_modes
from pactrain.seeds import derive, seed_global


@dataclass(frozen=True)
class ERM:
    """Settings of plain training; the defaults are torch's Adam."""

    optimizer: Literal["sgd", "adam", "adamw"] = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int = 64
    min_steps: int = 2000
    min_epochs: int = 30
    decay: bool = False

    def epochs(self, steps_per_epoch: int) -> int:
        """As many as PAC-Bayes training takes by default: enough steps for small data, enough passes for large."""
        return max(self.min_epochs, math.ceil(self.min_steps / steps_per_epoch))


def train_erm(
    model: nn.Module, data: Any, settings: ERM, *, loss: str | AnyLoss | None = None, seed: int = 0
) -> nn.Module:
    """Train `model` in place by empirical risk minimisation."""
    device = next(model.parameters()).device
    batches = as_batches(data, batch_size=settings.batch_size, device=device)
    loss = resolve(loss, next(iter(batches.ordered())))
    if isinstance(batches, TensorBatches):
        batches.batch_size = min(settings.batch_size, len(batches))
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    optimizer = kinds[settings.optimizer](model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    with restored_modes(model), torch.random.fork_rng(devices=[]):
        model.train()
        epochs = settings.epochs(sum(1 for _ in batches.epoch(0)))
        for epoch in range(epochs):
            if settings.decay:
                for group in optimizer.param_groups:
                    group["lr"] = settings.lr * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
            seed_global(derive(seed, "epoch", epoch))
            for batch in batches.epoch(derive(seed, "order", epoch)):
                risk = per_example(loss, model, batch).mean()
                if not torch.isfinite(risk):
                    raise TrainingError(f"plain training reached a loss of {float(risk)} in epoch {epoch + 1}")
                optimizer.zero_grad(set_to_none=True)
                risk.backward()
                optimizer.step()
    return model
