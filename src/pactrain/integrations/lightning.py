"""Lightning: `LitPosterior` trains a posterior with Lightning's Trainer.

A LightningModule of one's own changes in four places: make `self.posterior` and `self.bound` in `__init__`; in `training_step`
call `self.posterior(x)` instead of the network, with `reduction="none"`, and return `self.bound(losses, self.posterior).total`;
in `configure_optimizers` pass `self.posterior.parameters()`.  `validation_step` goes on calling the network: the mean.
"""

from typing import Any

import torch
from torch import Tensor

from pactrain.bounds.base import Bound
from pactrain.bounds.unbounded import Unbounded
from pactrain.distributions.posterior import Posterior
from pactrain.problem.losses import AnyLoss, Loss, per_example, resolve
from pactrain.runtime.errors import PactrainError

try:
    from lightning import LightningModule
except ImportError as error:
    raise PactrainError("LitPosterior needs Lightning: pip install 'pactrain[lightning]'") from error


class LitPosterior(LightningModule):
    """A posterior trained by minimising `bound`; checkpoints hold the means, the log-stds and the prior.

    loss: a name or `loss(predict, batch)`; by default cross-entropy for integer targets, mse for others.
    lr:   Adam's rate for all parameters.
    """

    def __init__(
        self, posterior: Posterior, bound: Unbounded | Bound, *, loss: str | AnyLoss | None = None, lr: float = 1e-3
    ) -> None:
        super().__init__()
        self.posterior, self.bound, self.loss, self.lr = posterior, bound, loss, lr

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The mean network's output."""
        return self.posterior.model(*args, **kwargs)

    def training_step(self, batch: Any, _: int) -> Tensor:
        """The bound at one draw of the weights."""
        losses = per_example(resolve(self.loss, batch), self.posterior, batch)
        objective = self.bound(losses, self.posterior)
        self.log_dict({"bound": objective.total, "risk": objective.risk, "kl": objective.kl}, prog_bar=True)
        return objective.total

    def validation_step(self, batch: Any, _: int) -> None:
        """The mean network's loss, and its accuracy or mean squared error."""
        loss = resolve(self.loss, batch)
        if not isinstance(loss, Loss):
            self.log("val_loss", per_example(loss, self.posterior.model, batch).mean(), prog_bar=True)
            return
        losses, scores = loss.with_score(self.posterior.model, batch)
        self.log("val_loss", losses.mean(), prog_bar=True, batch_size=len(losses))
        name, value = (
            ("val_accuracy", 1 - scores.mean()) if loss.task == "classification" else ("val_mse", scores.mean())
        )
        self.log(name, value, prog_bar=True, batch_size=len(losses))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam on means, log-stds and the prior's log-stds."""
        return torch.optim.Adam((p for p in self.posterior.parameters() if p.requires_grad), lr=self.lr)
