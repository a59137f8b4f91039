"""The configuration of a run: stored in its folder, and compared when the run is resumed."""

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from pactrain.certification.data_checks import digest_data
from pactrain.problem.augmentation import FlipCrop
from pactrain.problem.batches import Batches
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.versions import machine, versions
from pactrain.training.gradient_steps import OptimizerFactory
from pactrain.training.start import Start


def configuration(start: Start, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The content of config.json; `extra` is the caller's own."""
    problem, options, posterior = start.problem, start.options, start.posterior
    budget = options.limit
    return {
        "loss": problem.loss.full_name,
        "answers": problem.loss.meaning,
        "groups": {g: at.stop - at.start for g, at in zip(posterior.groups, posterior.group_slices, strict=True)},
        "rules": asdict(options.rules),
        "prior_std": start.prior.std,
        "prior_learned": start.prior.learn,
        "delta": options.delta,
        "seed": options.seed,
        "budget": {"seconds": None if math.isinf(budget.seconds) else budget.seconds, "epochs": budget.epochs},
        "n": start.untrained.n,
        "data_digest": None if start.problem.batches.table is None else digest_data(start.problem.batches),
        "model_digest": model_digest(posterior.model),
        "optimizer": _optimizer_name(options.optimizer),
        "threads": torch.get_num_threads(),
        "machine": machine(),
        "versions": versions(),
        "bound": options.bound,
        "prior_data": options.prior_data,
        "certificate": options.certificate,
        **_augmentation(problem.batches),
        **start.scaled.units.as_config(),
        **extra,
    }


def model_digest(model: nn.Module) -> str:
    """Fingerprint of a network's structure, and of the source of those of its classes that are not torch's or ours."""
    kinds = {kind for module in model.modules() for kind in type(module).__mro__}
    methods = [
        method
        for kind in sorted(kinds, key=lambda kind: kind.__qualname__)
        if not kind.__module__.startswith(("torch.", "pactrain.", "builtins"))
        for method in vars(kind).values()
        if inspect.isfunction(method)
    ]
    return hashlib.blake2b("".join([repr(model), *map(_source, methods)]).encode(), digest_size=16).hexdigest()


def _source(method: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(method)
    except (OSError, TypeError):  # typed into an interpreter, or made by a program
        return method.__qualname__


def _augmentation(batches: Batches) -> dict[str, Any]:
    """What the configuration says of augmented data."""
    if batches.transform is None:
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
            "LBFGS evaluates the loss several times per step, which a noisy loss does not allow; use another"
        )
    return type(trial).__name__
