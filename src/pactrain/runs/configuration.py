"""What a run was started with: kept in its folder, and compared when it is resumed."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from pactrain.problem.augmentation import FlipCrop
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import loss_name
from pactrain.problem.read import Problem
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.versions import machine, versions
from pactrain.training.gradient_steps import OptimizerFactory
from pactrain.training.options import Options
from pactrain.training.start import Start


def configuration(problem: Problem, start: Start, *, options: Options, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The content of config.json; `extra` is the caller's own."""
    posterior, budget = start.posterior, options.budget
    return {
        "loss": loss_name(problem.loss),
        "groups": {g: at.stop - at.start for g, at in zip(posterior.groups, posterior.group_slices, strict=True)},
        "rules": asdict(options.rules),
        "prior_std": start.prior.std,
        "prior_learned": start.prior.learn,
        "delta": options.delta,
        "seed": options.seed,
        "budget": {"seconds": None if math.isinf(budget.seconds) else budget.seconds, "epochs": budget.epochs},
        "n": start.n,
        "optimizer": _optimizer_name(options.optimizer),
        "threads": torch.get_num_threads(),
        "machine": machine(),
        "versions": versions(),
        "bound": options.bound,
        "prior_data": options.prior_data,
        **_augmentation(problem.batches),
        **extra,
        "prior_mean": start.prior_mean,
    }


def _augmentation(batches: Batches) -> dict[str, Any]:
    """What the configuration says of augmented data."""
    if not isinstance(batches, TensorBatches) or batches.transform is None:
        return {}
    transform = batches.transform
    name = repr(transform) if isinstance(transform, FlipCrop) else getattr(transform, "__qualname__", "own")
    return {"augment": {"transform": name, "counts (heuristic)": batches.counts}}


def _optimizer_name(optimizer: OptimizerFactory | None) -> str:
    """The class of the optimiser, tried out on one weight."""
    if optimizer is None:
        return "default"
    trial = optimizer([{"params": [nn.Parameter(torch.zeros(1))]}])
    if isinstance(trial, torch.optim.LBFGS):
        raise PactrainError(
            "LBFGS evaluates the loss several times a step, which a noisy loss does not allow; use another"
        )
    return type(trial).__name__
