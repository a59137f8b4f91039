"""Lightning: `LitPosterior` trains what `pactrain.prepare` has made with Lightning's Trainer.

A LightningModule of one's own changes in three places: make `prepared = pactrain.prepare(network, data)` and `self.posterior =
prepared.posterior` in `__init__`; in `training_step` call `self.posterior(x)` instead of the network; in `configure_optimizers` return
`prepared.optimizer` and `prepared.schedule`.  `validation_step` goes on calling the network: the mean.
"""

from typing import Any

from torch import Tensor

from pactrain.runtime.errors import PactrainError
from pactrain.training.prepare import Prepared

try:
    from lightning import LightningModule
except ImportError as error:
    raise PactrainError("LitPosterior needs Lightning: pip install 'pactrain[lightning]'") from error


class LitPosterior(LightningModule):
    """A posterior trained by Lightning; checkpoints hold the means, the log-stds, the prior and the optimiser.

    Args:
        prepared: What `pactrain.prepare` returned; its `epochs` is the number that the schedule reckons with.
    """

    def __init__(self, prepared: Prepared) -> None:
        super().__init__()
        self.prepared, self.posterior = prepared, prepared.posterior

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The mean network's output."""
        return self.posterior.model(*args, **kwargs)

    def training_step(self, batch: Any, _: int) -> Tensor:
        """The mean loss at one draw of the weights."""
        risk = self.prepared.objective(batch)
        self.log("risk", risk, prog_bar=True)
        return risk

    def validation_step(self, batch: Any, _: int) -> None:
        """The mean network's loss, and its accuracy or mean squared error."""
        loss = self.prepared.loss
        losses, scores = loss.with_score(self.posterior.model, batch)
        self.log("val_loss", losses.mean(), prog_bar=True, batch_size=len(losses))
        if scores is not None:
            name, value = (
                ("val_mse", scores.mean()) if loss.task == "regression" else ("val_accuracy", 1 - scores.mean())
            )
            self.log(name, value, prog_bar=True, batch_size=len(losses))

    def configure_optimizers(self) -> Any:
        """The optimiser and the schedule of the rules, one step of the schedule after each step of training."""
        schedule = {"scheduler": self.prepared.schedule, "interval": "step"}
        return {"optimizer": self.prepared.optimizer, "lr_scheduler": schedule}
