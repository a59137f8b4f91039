"""Hugging Face: `PACBayesTrainer` is a `Trainer` with another loss and another optimiser."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pactrain.bounds.base import Bound
from pactrain.distributions.posterior import Posterior
from pactrain.problem.losses import AnyLoss, per_example
from pactrain.rules.presets import AUTO
from pactrain.runtime import distributed
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import load_state, save_state
from pactrain.training.prepare import Prepared, prepare
from pactrain.training.state import unique_state

try:
    from transformers import Trainer
except ImportError as error:
    raise PactrainError("PACBayesTrainer needs transformers: pip install 'pactrain[transformers]'") from error

SCANNED = 128
"""Most examples on which the prior is scanned: encoders are dear, and the scan makes a hundred and fifty passes."""

POSTERIOR = "posterior.safetensors"


class PACBayesTrainer(Trainer):
    """Trains a posterior over the model's weights as `fit` does; frozen parameters stay frozen, so adapters just work.

    The model's weights at the start are the prior's mean.  When training begins, `pactrain.prepare` scans the prior and chooses
    stds, γ and the learning rate.  After `train()`, `prepared`, `posterior` and `bound` serve `pactrain.certify` and
    `posterior.predict`; evaluation uses the mean network.  Gradient accumulation adds up the gradients of several draws.

    Args:
        delta: Probability with which the bound may fail.
        prior: "layer", "tensor" or "model": what shares one standard deviation.
        loss: As in `pactrain.fit`; labels of a causal language model are its inputs, each token predicted from those before it.
        *args, **kwargs: As in `Trainer`; of its arguments, the learning rate and the weight decay are not used.
    """

    optimizer: Any

    def __init__(
        self, *args: Any, delta: float = 0.05, prior: str = "layer", loss: str | AnyLoss | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = False  # ours is a mean, which accumulation has to divide
        self.bound_delta, self.prior_groups, self.example_loss = delta, prior, loss
        self.prepared: Prepared | None = None

    @property
    def posterior(self) -> Posterior:
        """The distribution that is trained."""
        return self._prepare().posterior

    @property
    def bound(self) -> Bound:
        """The bound that is minimised."""
        return self._prepare().bound

    def _prepare(self) -> Prepared:
        """Everything that has to be known before the first step, from the weights as they are at the first call."""
        if self.prepared is None:
            assert self.model is not None
            device, seed, loader = self.args.device, int(self.args.seed), self.get_train_dataloader()
            if (
                self.args.world_size > 1
            ):  # the bound counts the rows of all processes; `Trainer` undoes their sharing likewise
                shared: Any = loader.batch_sampler
                shared.num_processes, shared.process_index = 1, 0
            self.prepared = prepare(
                self.model, loader, self.example_loss, prior=self.prior_groups,
                preset=AUTO.replace(scan_examples=SCANNED), delta=self.bound_delta, seed=seed, device=device,
            )  # fmt: skip
        return self.prepared

    def create_optimizer(self, *_: Any, **__: Any) -> torch.optim.Optimizer:
        """The optimiser of the rules, with their rate; its schedule is the Trainer's."""
        if self.optimizer is None:
            prepared = self._prepare()
            for group, rate in zip(prepared.optimizer.param_groups, prepared.schedule.base_lrs, strict=True):
                group["lr"] = group["initial_lr"] = rate
            self.optimizer = prepared.optimizer
        made: torch.optim.Optimizer = self.optimizer
        return made

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Gradients, averaged over processes: the posterior is called without the wrapper that would see to it."""
        loss: Tensor = super().training_step(*args, **kwargs)
        distributed.average_gradients([*self.posterior.means(), self.posterior.log_std])
        return loss

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """While training, the mean loss at one draw of the weights; otherwise the model's own loss at the mean."""
        if not model.training or self.prepared is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        outputs: list[Any] = []

        def predict(*args: Any, **named: Any) -> Any:
            outputs.append(self.posterior(*args, **named))
            return outputs[-1]

        total: Tensor = per_example(self.prepared.loss, predict, dict(inputs)).mean()
        return (total, outputs[-1]) if return_outputs else total

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Beside the model: what the posterior adds to it."""
        super()._save(output_dir, state_dict)
        own = {k: v for k, v in unique_state(self.posterior).items() if not k.startswith("model.")}
        save_state(Path(output_dir or str(self.args.output_dir)) / POSTERIOR, own, {})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, *args: Any, **kwargs: Any) -> None:
        self._prepare()  # from the weights before training, which are the prior's mean
        super()._load_from_checkpoint(resume_from_checkpoint, *args, **kwargs)
        kept, _ = load_state(Path(resume_from_checkpoint) / POSTERIOR)
        with torch.no_grad():
            for name, tensor in kept.items():
                getattr(self.posterior, name).copy_(tensor)
