"""Saving the state of a training as named tensors and plain values, and restoring it."""

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.runtime.files import pack_optimizer, unpack_optimizer
from pactrain.training.curvature import CurvatureStds
from pactrain.training.gamma_search import Walker
from pactrain.training.history import Record


@dataclass
class Progress:
    """Where a run is; all that is needed to go on, beside the tensors."""

    stage: int = 1
    epoch: int = 0
    step: int = 0
    stage1_epochs: int = 0
    stage2_epochs: int = 0
    seconds: float = 0.0
    best_loss: float = math.inf
    epochs_since_best: int = 0
    stage1: Record = field(default_factory=dict)
    scores: Record = field(default_factory=dict)  # of the last look at the network
    done: bool = False
    seconds_before: float = 0.0  # of trainings on fewer blocks
    blocks: list[Any] = field(
        default_factory=list
    )  # of each that was met: number of rows and errors, or a level in words


class Stateful(Protocol):
    """A trainer, as far as its state goes."""

    posterior: Posterior
    optimizer: torch.optim.Optimizer | None
    curvature: CurvatureStds | None
    stage1_end: Snapshot | None
    progress: Progress
    walker: Walker | None
    held_gamma: float


def pack(trainer: Stateful) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of a trainer; the tensors are its own, not copies."""
    tensors, packed = pack_optimizer(trainer.optimizer) if trainer.optimizer is not None else ({}, {})
    tensors |= {f"posterior/{k}": v for k, v in unique_state(trainer.posterior).items()}
    if trainer.curvature is not None:
        tensors |= trainer.curvature.state()
    if trainer.stage1_end is not None:
        tensors |= {f"stage1/{f.name}": getattr(trainer.stage1_end, f.name) for f in fields(Snapshot)}
    values = asdict(trainer.progress)
    values["best_loss"] = None if math.isinf(trainer.progress.best_loss) else trainer.progress.best_loss
    weight = None if trainer.curvature is None else trainer.curvature.kl_weight
    walk = None
    if trainer.walker is not None:
        best, walk = trainer.walker.state()
        tensors |= {f"best/{k}": v for k, v in best.items()}
    held = {"kl_weight": weight, "gamma": trainer.held_gamma}
    return tensors, {"progress": values, "optimizer": packed, "walk": walk, **held}


def unpack(trainer: Stateful, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Put a trainer into a state."""
    kept = _below("posterior/", tensors)
    with torch.no_grad():
        for name, tensor in unique_state(trainer.posterior).items():
            tensor.copy_(kept[name])
    if trainer.curvature is not None:
        trainer.curvature.restore(tensors)
        trainer.curvature.kl_weight = values["kl_weight"]
    if "stage1/means" in tensors:
        device = trainer.posterior.log_std.device
        trainer.stage1_end = Snapshot(**{f.name: tensors[f"stage1/{f.name}"].to(device) for f in fields(Snapshot)})
    if trainer.optimizer is not None:
        unpack_optimizer(trainer.optimizer, tensors, values["optimizer"])
    if trainer.walker is not None:
        trainer.walker.load(_below("best/", tensors), values["walk"])
    trainer.held_gamma = values["gamma"]
    progress = dict(values["progress"])
    progress["best_loss"] = math.inf if progress["best_loss"] is None else progress["best_loss"]
    trainer.progress = Progress(**progress)


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def unique_state(module: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, each storage once (tied weights are one weight)."""
    return dict(module.named_parameters()) | dict(module.named_buffers())
