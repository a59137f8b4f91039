"""`prepare`: posterior, objective, optimiser and schedule with the rules' own values, for loops that are not ours."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from pactrain.bounds.base import Bound
from pactrain.bounds.moment import Moment
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.losses import AnyLoss, Loss, per_example
from pactrain.problem.units import Units
from pactrain.rules.choose_units import Scaled
from pactrain.rules.presets import rules_for
from pactrain.runtime.errors import PactrainError
from pactrain.training.closed_form_optimizer import ClosedFormAdam
from pactrain.training.closed_form_steps import first_weight
from pactrain.training.options import Budget, Options, Rules
from pactrain.training.schedule import Pace
from pactrain.training.session import reading, session
from pactrain.training.start import make_start, place_prior, plan_of
from pactrain.training.train import NotKept


@dataclass(frozen=True)
class Prepared:
    """What a training loop of your own needs.

    Attributes:
        posterior: Call it instead of the network: it answers at a fresh draw of the weights.
        optimizer: A torch optimiser over the posterior's parameters; the pull of the prior is a part of its steps.
        schedule: A torch learning-rate schedule; call its `step()` after each step of the optimiser.
        epochs: How many epochs the rules would train, and the schedule reckons with.
        batch_size: Examples per batch by the rules; 0 where the data came in batches of your own.
        loss: The loss, with one value per example.
        bound: The bound that is minimised.
        moment: The scan of the prior.
    """

    posterior: Posterior
    optimizer: ClosedFormAdam
    schedule: LambdaLR
    epochs: int
    batch_size: int
    loss: Loss
    bound: Bound
    moment: Moment

    def objective(self, batch: Any) -> Tensor:
        """The mean loss of a batch at a fresh draw of the weights: what `backward()` is called on."""
        return per_example(self.loss, self.posterior, batch).mean()


def prepare(
    model: nn.Module, data: Any, loss: str | AnyLoss | None = None, *,
    prior: str | Prior = "layer", preset: str | Rules = "auto", delta: float = 0.05, seed: int = 0,
    device: str | torch.device = "auto", epochs: int | None = None,
) -> Prepared:  # fmt: skip
    """Do what `fit` does before its first step, and hand out the parts.

    Args:
        model: Any torch module; its weights at the call are the mean of the prior (faint layers are scaled first).
        data: Training data, as in `fit`; its columns should be of the size of one, as no units are chosen here.
        loss: As in `fit`.
        prior: As in `fit`.
        preset: Rules with closed-form stds, such as "auto".
        delta: Probability with which the bound may fail.
        seed: Decides the scan.
        device: "cpu", "cuda" or "auto".
        epochs: Epochs that the schedule reckons with; by default those of the rules.

    Returns:
        The parts, ready for the first step.

    Raises:
        PactrainError: An argument or the data cannot be used, or the preset trains stds by gradients.

    Example:
        >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> model, data = nn.Linear(3, 2), (X, (X[:, 0] > 0).long())
        >>> prepared = prepare(model, data)
        >>> for _ in range(prepared.epochs):
        ...     prepared.optimizer.zero_grad()
        ...     prepared.objective(data).backward()
        ...     prepared.optimizer.step()
        ...     prepared.schedule.step()
        >>> float((model(X).argmax(1) == data[1]).float().mean()) > 0.9
        True
    """
    rules = rules_for(preset)
    if rules.stds != "curvature":
        raise PactrainError(
            f"prepare goes with rules that have closed-form stds, such as preset='auto', not {rules.name!r}"
        )
    rules = rules.replace(held="left out") if rules.held == "walk" else rules
    options = Options(
        prior=prior, preset=rules, delta=delta, device=device, seed=seed, budget=Budget(epochs=epochs), progress=False
    )
    with session(model, options) as opened, reading(model, data, None, loss=loss, options=opened) as problem:
        start = make_start(model, Scaled(problem, Units(), problem), opened)
        moment, std = place_prior(start, NotKept())
        plan = plan_of(start, moment, std)
    posterior, table = start.posterior, problem.batches.table
    highest = max(math.log(std), plan.prior_range[0])
    optimizer = ClosedFormAdam(
        posterior, lr=plan.lr, kl_weight=first_weight(plan.bound, plan.gamma.value), memory=rules.curvature_memory,
        first=rules.first_curvature, log_std_range=(plan.prior_range[0], highest),
    )  # fmt: skip
    length = epochs or Pace(rules, plan.budget, start.untrained.steps, None).stage1_limit
    steps = length * start.untrained.steps
    schedule = LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))
    size = 0 if table is None else table.batch_size
    return Prepared(posterior, optimizer, schedule, length, size, problem.loss, plan.bound, moment)
