"""Hugging Face: `PACBayesTrainer` is a `Trainer` with another loss and another optimiser, and nothing else."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pactrain.bounds.unbounded import Unbounded
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.losses import AnyLoss, per_example, resolve
from pactrain.rules.presets import AUTO
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import load_state, save_state
from pactrain.scan.estimate import estimate_moment
from pactrain.training.state import unique_state

try:
    from transformers import Trainer
except ImportError as error:
    raise PactrainError("PACBayesTrainer needs transformers: pip install 'pactrain[transformers]'") from error

SCANNED = 128
"""Examples on which the prior is scanned: encoders are dear, and the scan makes a hundred and fifty passes."""

POSTERIOR = "posterior.safetensors"


class PACBayesTrainer(Trainer):
    """Trains by minimising the bound over means, log-stds and prior; frozen parameters stay frozen, so adapters just work.

    The model's weights at the start are the prior's mean.  The prior is scanned when the optimiser is made.  `posterior` and
    `bound` (after `train()`) serve `pactrain.certify` and `posterior.predict`; evaluation uses the mean network.

    delta: probability with which the bound may fail.
    loss:  a name or `loss(predict, batch)`; by default by the type of the labels.
    Everything else is as in `Trainer`; its rate is the rate of all parameters, its weight decay is not used.
    """

    optimizer: Any

    def __init__(
        self, *args: Any, delta: float = 0.05, prior: str = "layer", loss: str | AnyLoss | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.posterior = Posterior(self.model, Prior(per=prior))  # type: ignore[arg-type]
        self.bound: Unbounded | None = None
        self.bound_delta, self.example_loss = delta, loss
        self.restored = False

    def create_optimizer(self, *_: Any, **__: Any) -> torch.optim.Optimizer:
        """Scan the prior, choose where the stds start, and make Adam."""
        if self.optimizer is None:
            data: Any = self.train_dataset
            if not hasattr(data, "__len__"):
                raise PactrainError("the bound counts the training examples: train_dataset must have a length")
            batches, posterior, n = self.get_train_dataloader(), self.posterior, len(data)
            moment = estimate_moment(
                posterior, batches, self.example_loss, n=n, max_examples=SCANNED, seed=self.args.seed, draws=AUTO.draws
            )
            self.bound = Unbounded(n, self.bound_delta, moment=moment)
            if not self.restored:  # a checkpoint is read before the optimiser is made
                posterior.reset_std(AUTO.start_std(posterior, self.bound))
            trained = [p for p in posterior.parameters() if p.requires_grad]
            self.optimizer = torch.optim.Adam(trained, lr=self.args.learning_rate)
        made: torch.optim.Optimizer = self.optimizer
        return made

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """While training, the bound at one draw of the weights; otherwise the model's own loss at the mean."""
        if not model.training or self.bound is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        outputs: list[Any] = []

        def predict(*args: Any, **named: Any) -> Any:
            outputs.append(self.posterior(*args, **named))
            return outputs[-1]

        losses = per_example(resolve(self.example_loss, inputs), predict, dict(inputs))
        total: Tensor = self.bound(losses, self.posterior).total.to(losses.dtype)
        return (total, outputs[-1]) if return_outputs else total

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Beside the model: what the posterior adds to it."""
        super()._save(output_dir, state_dict)
        own = {k: v for k, v in unique_state(self.posterior).items() if not k.startswith("model.")}
        save_state(Path(output_dir or str(self.args.output_dir)) / POSTERIOR, own, {})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, *args: Any, **kwargs: Any) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, *args, **kwargs)
        self.restored = True
        kept, _ = load_state(Path(resume_from_checkpoint) / POSTERIOR)
        with torch.no_grad():
            for name, tensor in kept.items():
                getattr(self.posterior, name).copy_(tensor)
