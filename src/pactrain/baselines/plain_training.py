"""Plain training (empirical risk minimisation) with the classical regularisers, for comparison."""

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pactrain.baselines.checkpoint import Checkpoint, Record
from pactrain.baselines.weight_noise import noisy
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import Batches
from pactrain.problem.dropout import dropping
from pactrain.problem.input_types import as_network_takes
from pactrain.problem.losses import AnyLoss, Loss
from pactrain.problem.module_modes import restored_modes
from pactrain.problem.read import read_batches
from pactrain.problem.scores import Scores, evaluate
from pactrain.problem.untrained import training_mode
from pactrain.rules.presets import AUTO
from pactrain.runtime.devices import choose_device
from pactrain.runtime.errors import DataError, PactrainError, TrainingError
from pactrain.runtime.seeds import derive, generator, own_randomness, seed_global
from pactrain.runtime.trained_models import TRAINED
from pactrain.training.precision import Computing

MEASURE_EVERY = 20
"""Steps between two measurements on the validation data, unless said otherwise."""


@dataclass(frozen=True)
class Settings:
    """Everything that plain training leaves to the user.

    Attributes:
        optimizer: "sgd", "adam" or "adamw".
        lr: Learning rate.
        momentum: Of SGD.
        weight_decay: Of the optimiser.
        noise: Standard deviation of the Gaussian noise in the weights at which each step's gradient is taken.
        dropout: Rate of the network's Dropout layers, or behind its activations if it has none; None leaves it as it is.
        batch_size: None takes that of `fit`; data that comes in batches of its own keeps them.
        epochs: The length; give it or `steps`.  With neither, as many steps as `fit` takes by default.
        steps: The length in steps.
        schedule: "constant" or "cosine".

    Raises:
        PactrainError: A setting is not known or out of its range.

    Example:
        >>> Settings("adamw", lr=0.01, weight_decay=0.1).rate(step=0, steps=100)
        0.01
    """

    optimizer: Literal["sgd", "adam", "adamw"] = "adam"
    lr: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    noise: float = 0.0
    dropout: float | None = None
    batch_size: int | None = None
    epochs: int | None = None
    steps: int | None = None
    schedule: Literal["constant", "cosine"] = "constant"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.optimizer not in ("sgd", "adam", "adamw"):
            raise PactrainError(f"optimizer {self.optimizer!r} is not known; use sgd, adam or adamw")
        if self.schedule not in ("constant", "cosine"):
            raise PactrainError(f"schedule {self.schedule!r} is not known; use constant or cosine")
        if self.momentum and self.optimizer != "sgd":
            raise PactrainError(f"momentum={self.momentum} goes with sgd; {self.optimizer} has its own")
        if self.epochs is not None and self.steps is not None:
            raise PactrainError("give the length in epochs or in steps, not both")
        if self.lr <= 0 or min(self.weight_decay, self.noise) < 0 or not 0 <= (self.dropout or 0.0) < 1:
            raise PactrainError(f"lr must be positive, weight_decay and noise not negative, dropout in [0, 1): {self}")
        if any(v is not None and v < 1 for v in (self.batch_size, self.epochs, self.steps)):
            raise PactrainError(f"batch_size, epochs and steps must be at least 1: {self}")

    def length(self, an_epoch: int) -> int:
        """The length of the training.

        Args:
            an_epoch: Steps in an epoch.

        Returns:
            Number of steps.
        """
        if self.steps is not None:
            return self.steps
        return an_epoch * (AUTO.stage1_epochs(an_epoch) if self.epochs is None else self.epochs)

    def make_optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Make the torch optimiser.

        Args:
            parameters: What it trains.

        Returns:
            The optimiser.
        """
        fused = all(p.is_floating_point() for p in parameters)  # half the time of a step of a small network
        if self.optimizer == "sgd":
            return torch.optim.SGD(
                parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay, fused=fused
            )
        kind = torch.optim.AdamW if self.optimizer == "adamw" else torch.optim.Adam
        return kind(parameters, lr=self.lr, weight_decay=self.weight_decay, fused=fused)

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of a step.

        Args:
            step: Number of the step, counted from 0.
            steps: Number of all steps.

        Returns:
            The rate.
        """
        return self.lr if self.schedule == "constant" else 0.5 * self.lr * (1 + math.cos(math.pi * step / steps))


DEFAULTS = Settings()


@dataclass(frozen=True)
class Trained:
    """How a plain training went: the scores at its end on the data it saw and, if it had any, on validation data; what was watched."""

    steps: int
    seconds: float
    train: Scores
    best_step: int | None = None
    validation: Scores | None = None
    history: list[Record] = field(default_factory=list)


def rank(scores: Scores) -> tuple[float, float]:
    """Scores as something to compare, larger is better: accuracy first where there is one, then the loss."""
    loss = scores["loss"] if math.isfinite(scores["loss"]) else math.inf
    return scores.get("accuracy", 0.0) if math.isfinite(loss) else -math.inf, -loss


def train(
    model: nn.Module, data: Any, settings: Settings = DEFAULTS, *,
    loss: str | AnyLoss | None = None, validation: Any = None, stop_at: int | None = None, measure_every: int = MEASURE_EVERY,
    watch: Callable[[int], Record] | None = None, keep: Path | None = None, precision: str | None = None, seed: int = 0,
    device: str | torch.device = "auto",
) -> Trained:  # fmt: skip
    """Train `model` in place on data of any kind that `fit` takes.

    Args:
        model: The network.
        data: Anything that `fit` takes.
        settings: Optimiser, rate, regularisers and length.
        loss: As in `fit`.
        validation: Data by which the best weights are kept; the model ends with them, and the result has their step.
        stop_at: End after this number of steps of the schedule, to train again on everything for as long as was best.
        measure_every: Steps between two measurements on `validation`.
        watch: Called with the number of steps at every measurement; what it returns makes up the history.
        keep: Folder for a checkpoint per epoch; a training that is found there goes on.  It goes without `validation`.
        precision: As in `fit`.
        seed: Decides everything random.
        device: As in `fit`.

    Returns:
        Steps, seconds and scores.

    Raises:
        TrainingError: The loss did not stay finite.

    Example:
        >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0)); y = (X[:, 0] > 0).long()
        >>> train(torch.nn.Linear(3, 2), (X, y), Settings(lr=0.1, steps=50)).train["accuracy"] > 0.9
        True
    """
    if keep is not None and validation is not None:
        raise PactrainError("keep= does not keep the best weights on validation data; leave out one of the two")
    started, history = time.monotonic(), list[Record]()
    where, how = choose_device(device), Computing(precision=precision)
    model.to(where)
    with own_randomness(where, seed), restored_modes(model):
        batches, watched, chosen = _read(model, data, validation, loss, settings, where)
        length = settings.length(_steps_of(batches))
        until = length if stop_at is None else min(stop_at, length)
        best = _Best(model, watched, chosen)
        training_mode(model)
        TRAINED.add(model)  # its weights are no longer a data-free prior mean
        with dropping(model, settings.dropout):
            training = _Training(model, batches, chosen, settings, length, until, seed, where, how)
            for step in training.steps(history, keep):
                if step % measure_every and step != until:
                    continue
                best.keep_if_better(step)
                if watch is not None:
                    history.append(watch(step))
        best.restore()
        scores = evaluate(model, batches.ordered(), chosen)
    return Trained(until, time.monotonic() - started, scores, best.step, best.scores, history)


def _read(
    model: nn.Module, data: Any, validation: Any, loss: str | AnyLoss | None, settings: Settings, device: torch.device
) -> tuple[Batches, Batches | None, Loss]:
    """The training data and the validation data, as the network takes them, and the loss."""
    size = settings.batch_size
    rules = AUTO if size is None else AUTO.replace(batch_size=size, large_batch_size=size)
    batches = read_batches(model, data, rules.batch, device, "training")
    watched = None if validation is None else read_batches(model, validation, rules.batch, device, "validation")
    sample = next(iter(batches.ordered()), None)
    if sample is None:
        raise DataError("the training data has no batch")
    chosen = as_loss(loss, sample, model)
    for part in (batches, watched):
        if part is not None:
            as_network_takes(model, part, chosen)
    return batches, watched, chosen


def _steps_of(batches: Batches) -> int:
    return batches.steps or sum(1 for _ in batches.ordered())


@dataclass(frozen=True)
class _Training:
    """What is trained on what, how, and for how many steps of a schedule of `length`."""

    model: nn.Module
    batches: Batches
    loss: Loss
    settings: Settings
    length: int
    until: int
    seed: int
    device: torch.device
    computing: Computing

    def steps(self, history: list[Record], keep: Path | None) -> Iterator[int]:
        """Take the steps, with the number taken after each; `history` is kept with the checkpoints in `keep`."""
        weights = [p for p in self.model.parameters() if p.requires_grad]
        optimizer = self.settings.make_optimizer(weights)
        noise = generator(self.device, self.seed, "weight noise")
        kept = None if keep is None else Checkpoint(keep, self.model, optimizer, noise, history)
        done, epoch = (0, 0) if kept is None else kept.restore()
        while done < self.until:
            seed_global(derive(self.seed, "dropout", epoch))
            for batch in self.batches.epoch(derive(self.seed, "order", epoch)):
                for group in optimizer.param_groups:
                    group["lr"] = self.settings.rate(done, self.length)
                optimizer.zero_grad(set_to_none=True)
                with noisy(weights, self.settings.noise, noise):
                    value = self.computing.losses(self.loss, self.model, batch).mean()
                    value.backward()
                optimizer.step()
                done += 1
                if (done % MEASURE_EVERY == 0 or done == self.until) and not bool(torch.isfinite(value)):
                    raise TrainingError(f"the loss became {value.item()} by step {done}; take a smaller learning rate")
                yield done
                if done >= self.until:
                    break
            epoch += 1
            if kept is not None:
                kept.keep(done, epoch)


class _Best:
    """The best weights seen so far on validation data; nothing where there is none."""

    step: int | None = None
    scores: Scores | None = None
    weights: dict[str, Tensor]

    def __init__(self, model: nn.Module, batches: Batches | None, loss: Loss) -> None:
        self.model, self.batches, self.loss = model, batches, loss
        self.keep_if_better(0)

    def keep_if_better(self, step: int) -> None:
        """Keep the present weights if they are better."""
        if self.batches is None:
            return
        scores = evaluate(self.model, self.batches.ordered(), self.loss)
        if self.scores is None or rank(scores) > rank(self.scores):
            self.step, self.scores, self.weights = step, scores, copy.deepcopy(self.model.state_dict())

    def restore(self) -> None:
        """Give the network the best weights."""
        if self.batches is not None:
            self.model.load_state_dict(self.weights)
