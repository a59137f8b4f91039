"""Several processes of one job, started by torchrun: their ranks, and what they have to agree on.

Every rank holds the whole network, draws the same noise from the shared seed, takes its share of each batch and adds its
gradient to the others'.  As all of a step's gradients stand in one vector, that is one sum per step, and as every rank then
does the same arithmetic, the weights stay the same everywhere.  Whatever depends on the clock, on Ctrl-C or on files is
decided by the first rank.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pactrain.runtime.errors import DataError, TrainingError

GONE = (
    "another process of this job has ended or cannot be reached, so this one ends too; "
    "if the run has a folder, start the same command again with --resume"
)


def world() -> int:
    """Number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if world() > 1 else 0


@contextmanager
def joined() -> Iterator[None]:
    """Join the job that torchrun has started, if it has; leave it at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ or world() > 1:
        yield
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local < torch.cuda.device_count():
        torch.cuda.set_device(local)
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    before = signal.signal(signal.SIGTERM, _exit_on_sigterm)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()


def _exit_on_sigterm(*_: object) -> None:
    """torchrun tells the other ranks to end when one has died."""
    raise TrainingError(GONE)


def share(batch: Any) -> Any:
    """This rank's rows of a batch that every rank has."""
    count, mine = world(), rank()
    if count == 1:
        return batch
    rows = len(batch[0])
    if rows < count:
        raise DataError(f"a batch of {rows} rows cannot be shared out among {count} processes; start fewer of them")
    return tuple(t[rows * mine // count : rows * (mine + 1) // count] for t in batch)


def mean_loss(losses: Tensor) -> tuple[Tensor, float]:
    """From this rank's losses the mean loss of the whole batch, as a tensor whose gradients averaged over ranks are the
    mean's, and as a number."""
    if world() == 1:
        risk = losses.mean()
        return risk, float(risk.detach())
    both = torch.stack(
        [losses.detach().sum().double(), torch.tensor(float(len(losses)), device=losses.device).double()]
    )
    total, count = add_up(both).tolist()
    scaled = losses.sum() * (world() / count)
    return scaled - scaled.detach() + total / count, total / count


def average(values: Tensor) -> None:
    """The average over ranks, in place."""
    if world() > 1:
        add_up(values).div_(world())


def average_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Give every parameter the average of the ranks' gradients; one that a rank has no gradient for counts as zero there."""
    if world() > 1:
        for p in parameters:
            if p.requires_grad:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                average(p.grad)


def add_up(values: Tensor) -> Tensor:
    """The sum over ranks, in place."""
    if world() > 1:
        _waiting(lambda: dist.all_reduce(values))
    return values


def largest(value: float) -> float:
    """The largest of the ranks' values."""
    if world() == 1:
        return value
    shared = torch.tensor([value], dtype=torch.float64, device="cpu")
    _waiting(lambda: dist.all_reduce(shared, dist.ReduceOp.MAX))
    return float(shared)


def from_first(*values: float) -> tuple[float, ...]:
    """The first rank's numbers."""
    if world() == 1:
        return values
    shared = torch.tensor(values, dtype=torch.float64, device="cpu")
    _waiting(lambda: dist.broadcast(shared, 0))
    return tuple(shared.tolist())


def document_from_first(values: Any) -> Any:
    """The first rank's plain values (whatever JSON holds)."""
    return values if world() == 1 else json.loads(bytes_from_first(json.dumps(values).encode()))


def bytes_from_first(content: bytes) -> bytes:
    """The first rank's bytes."""
    if world() == 1:
        return content
    length = int(from_first(float(len(content)))[0])
    data = torch.frombuffer(bytearray(content.ljust(length, b"\0")[:length] or b"\0"), dtype=torch.uint8)
    _waiting(lambda: dist.broadcast(data, 0))
    return bytes(data.numpy().tobytes())[:length]


@torch.no_grad()
def same_weights(model: nn.Module) -> None:
    """Give every rank the first one's parameters and buffers."""
    if world() > 1:
        for t in (*model.parameters(), *model.buffers()):
            _waiting(partial(dist.broadcast, t.data, 0))


def _waiting(exchange: Callable[[], Any]) -> None:
    try:
        exchange()
    except RuntimeError as error:
        raise TrainingError(f"{GONE} ({str(error).splitlines()[0]})") from error
