"""Single things that are done before the first step: the device, the data, the untrained network, the scan."""

import ctypes
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from pactrain import ranks
from pactrain.auto import FEWEST_SCANNED, Rules
from pactrain.batches import Batches, TensorBatches, as_batches
from pactrain.errors import DataError, PactrainError
from pactrain.evaluate import Scores, measure
from pactrain.events import Callback
from pactrain.gave_up import gave_up, is_torchs, refusing, refusing_loss
from pactrain.losses import AnyLoss, Loss, per_example
from pactrain.modes import batch_statistics, restored_buffers, restored_modes
from pactrain.moment import LOG_STD_RANGE, Moment, log_grid
from pactrain.posterior import Posterior
from pactrain.runs import RunFolder
from pactrain.scan import estimate_moment
from pactrain.seeds import derive, seed_global
from pactrain.statement import Caveat

TRAINED: WeakSet[nn.Module] = WeakSet()
"""Networks that `fit` has trained in this process: their weights are no data-free prior mean any more."""


def seen_before(model: nn.Module) -> list[Caveat]:
    """A caveat for a network that `fit` has trained in this process."""
    if model not in TRAINED:
        return []
    return [
        Caveat(
            "pactrain trained the network before, so its initial weights may have seen these examples; build it anew"
        )
    ]


def choose_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise PactrainError(
                f"device {device!r}: this machine, or this build of torch, has no CUDA; use cpu or auto"
            )
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise PactrainError(f"device {device!r} cannot be used ({reason}); use cpu, cuda or auto") from error
    return chosen


@contextmanager
def own_randomness(device: torch.device, seed: int) -> Any:
    """Leave the caller's global random state as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        seed_global(derive(seed, "start"))
        yield


def read_batches(model: nn.Module, data: Any, rules: Rules, device: torch.device, role: str) -> Batches:
    size = len(data) if isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__") else None
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    batches = as_batches(data, batch_size=rules.batch(size) if size else None, device=device, dtype=dtype, role=role)
    if isinstance(batches, TensorBatches):
        batches.batch_size = rules.batch(len(batches))
    return batches


def counts(batches: Batches) -> int:
    """How often the training objective counts an example: once, unless a heuristic for augmented data says otherwise."""
    return batches.counts if isinstance(batches, TensorBatches) else 1


def training_mode(model: nn.Module) -> None:
    """Train mode, unless the user has already put parts of the model into it and left others out."""
    if not any(m.training for m in model.modules()):
        model.train()


@contextmanager
def shapes_named(sample: Any) -> Iterator[None]:
    """torch says which of two matrices did not fit, but not that one of them was the user's data."""
    try:
        yield
    except RuntimeError as error:
        first = sample[0] if isinstance(sample, (tuple, list)) else None
        others = isinstance(error, (PactrainError, torch.OutOfMemoryError, NotImplementedError))
        if others or not isinstance(first, torch.Tensor):
            raise
        advice = ""
        if not first.is_floating_point() and "type" in str(error):
            advice = f". These are whole numbers ({first.dtype}): let your batches hold floating-point ones, x.float()"
        raise DataError(
            f"the network does not take the training data, of which a batch of inputs has the shape {tuple(first.shape)} "
            f"(examples first): {error}{advice}"
        ) from error


def look_at_data(posterior: Posterior, batches: Batches, loss: AnyLoss) -> tuple[Scores, int]:
    """The untrained network's scores, n, and the number of batches an epoch."""
    steps = 0

    def counted() -> Iterator[Any]:
        nonlocal steps
        for batch in batches.ordered():
            steps += 1
            yield batch

    with batch_statistics(posterior.model):
        scores = measure(posterior.model, counted(), loss)
    if isinstance(batches, TensorBatches):
        steps = batches.steps
    if not math.isfinite(scores["loss"]):
        raise DataError(
            f"the loss of the untrained network is {scores['loss']}; look for NaN or huge values in the inputs and "
            "targets, and for a logarithm or a division by zero in the loss"
        )
    return scores, steps


def scan(
    posterior: Posterior,
    batches: Batches,
    loss: AnyLoss,
    rules: Rules,
    n: int,
    steps_per_epoch: int,
    seed: int,
    tell: Callback,
    *,
    folder: RunFolder | None = None,
    most: float = math.inf,
    below: float | None = None,
) -> Moment:
    """The moment table, from `most` examples at most where time is short.

    below: of a prior around zero that starts there and can only shrink: no wider one is looked at.
    """
    found = folder.moment() if folder is not None else None
    kept = ranks.document_from_first(found.to_dict() if found is not None and ranks.world() > 1 else None)
    if found is not None or kept is not None:
        return found or Moment.from_dict(kept)
    low, high = LOG_STD_RANGE
    log_stds = [low + (high - low) * i / (rules.std_points - 1) for i in range(rules.std_points)]
    moment = estimate_moment(
        posterior,
        batches,
        loss,
        gammas=log_grid(rules.gamma_min, rules.gamma_max, rules.gamma_points),
        log_stds=log_stds if below is None else log_stds[: max(2, sum(x <= math.log(below) + 1e-6 for x in log_stds))],
        draws=rules.draws if below is None else rules.centre_draws,
        max_examples=int(min(rules.examples_to_scan(n, steps_per_epoch), max(FEWEST_SCANNED, most))),
        n=n,
        seed=seed,
        progress=tell,
    )
    if folder is not None:
        folder.write_moment(moment)
        return folder.moment() or moment  # what a resumed run would read, to the last bit
    return moment


def loss_name(loss: AnyLoss) -> str:
    """What a loss is called."""
    return loss.name if isinstance(loss, Loss) else getattr(loss, "__qualname__", type(loss).__name__)


def channels_last(model: nn.Module, batches: Batches, loss: AnyLoss) -> None:
    """Lay images out with their channels last where the network has 2-d convolutions and takes them so: the same numbers, sooner."""
    if not isinstance(batches, TensorBatches) or not any(isinstance(m, nn.Conv2d) for m in model.modules()):
        return
    images, *others = batches.tensors
    if images.ndim != 4 or not images.is_floating_point():
        return
    trial = (images[:2].to(memory_format=torch.channels_last), *(t[:2] for t in others))
    params = [p for p in model.parameters() if p.requires_grad]
    try:
        with restored_modes(model), restored_buffers(model):
            for mode in (True, False):
                model.train(mode)
                losses = per_example(refusing_loss(loss), refusing(model), trial)
                torch.autograd.grad(losses.sum(), params, allow_unused=True)
    except (PactrainError, RuntimeError) as error:  # a network that calls view(), say, needs the usual layout
        if not is_torchs(error):
            gave_up("Images were not laid out with their channels last", error, instead="training takes longer")
        return
    batches.tensors = (images.to(memory_format=torch.channels_last), *others)


def give_memory_back() -> None:
    """Return what the scan and the leave-one-out have freed to the machine; glibc keeps pieces below 32 MB to itself."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
