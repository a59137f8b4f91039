"""The number of torch's threads, by the size of the work.

Threads that share a small piece of work wait for each other longer than they work, and by default they wait spinning: beside other
processes a training can then take eight times as long on two threads as on one.  The number follows from the sizes of the network
and of a batch alone, never from time or load, so that the same call on the same machine gives the same bits.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating, restored_buffers
from pactrain.runtime import distributed
from pactrain.runtime.gave_up import Refused, refusing

FLOPS_PER_THREAD = 1e9
"""Work in a forward pass that occupies a thread; two are used from twice this on.  Of networks with 0.4 to 1.2 billion operations, two threads
took 0.6 to 0.8 of the time of one on a quiet machine, but beside busy processes small CNNs took up to eight times as long; from 4
billion on two were no slower there either.  One thread too few costs little, one too many may cost much."""

FLOPS_PER_WEIGHT = 150
"""Drawing and moving a weight takes about as long as so many operations of a forward pass."""

CHOSEN_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def threads_for(model: nn.Module, batch: Any, loss: Loss) -> Iterator[int]:
    """Inside the block torch has as many threads as `batch` occupies; on leaving, as many as before.

    A number that the user has set, in the environment or by `torch.set_num_threads`, stays.  So does that of an outer block.

    >>> with threads_for(nn.Linear(3, 2), (torch.ones(5, 3), torch.zeros(5, 2)), lambda f, b: (f(b[0]) - b[1]).sum(1)) as number:
    ...     number
    1
    """
    before = torch.get_num_threads()
    if not _free_to_choose(before, model):
        yield before
        return
    number = threads_by_work(distributed.largest(work_in(model, batch, loss)), _share(before))
    torch.set_num_threads(number)
    _CHOSEN.append(number)
    try:
        yield number
    finally:
        _CHOSEN.pop()
        torch.set_num_threads(before)


_CHOSEN: list[int] = []  # the numbers of the blocks that are open


def threads_by_work(work: float, most: int) -> int:
    """Threads for so many floating-point operations in a forward pass, 1 to `most`.

    >>> [threads_by_work(flops, 8) for flops in (1e6, 1.9e9, 2e9, 5e9, 1e12)]
    [1, 1, 2, 5, 8]
    """
    return max(1, int(min(most, work // FLOPS_PER_THREAD)))


def work_in(model: nn.Module, batch: Any, loss: Loss) -> float:
    """Floating-point operations of one forward pass over the batch, and what the weights take, in the same unit."""
    params = list(model.parameters())
    if any(is_lazy(p) for p in params):  # a forward pass would give it a shape; what to do is said later
        return 0.0
    counter = _Counter()
    with evaluating(model), restored_buffers(model), torch.random.fork_rng(devices=[]):
        _run(counter, model, batch, loss)
    return counter.flops + FLOPS_PER_WEIGHT * sum(p.numel() for p in params if p.requires_grad)


@torch.no_grad()
def _run(counter: "_Counter", model: nn.Module, batch: Any, loss: Loss) -> None:
    """Count one pass; what is wrong with a network or its data is said, with advice, where it is next used."""
    with suppress(Refused), counter:
        refusing(loss)(model, batch)


class _Counter(TorchDispatchMode):
    """Adds up the operations of products and convolutions; torch's own counter takes sparse matrices for full ones."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            full = [a for a in args if isinstance(a, Tensor)]
            filled = min((a._nnz() / a.numel() for a in full if a.layout != torch.strided and a.numel()), default=1.0)
            self.flops += filled * formula(*args, **(kwargs or {}), out_val=out)
        return out


def _free_to_choose(present: int, model: nn.Module) -> bool:
    """True where nobody has chosen a number of threads and the network is on a CPU that has several."""
    on_cpu = all(p.device.type == "cpu" for p in model.parameters())
    said = _CHOSEN or any(os.environ.get(name) for name in CHOSEN_BY_USER)
    return on_cpu and present > 1 and not said and present in _untouched()


def _untouched() -> set[int]:
    """Numbers of threads that torch may start with: of all processors, or of all cores where each is two processors."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    siblings = [Path(f"/sys/devices/system/cpu/cpu{i}/topology/thread_siblings_list") for i in mine]
    cores = {file.read_text() for file in siblings if file.exists()}
    return {os.cpu_count() or 1, len(mine), len(cores)}


def _share(threads: int) -> int:
    """This process's share of them, where several processes of one job use the machine."""
    return max(1, threads // int(os.environ.get("LOCAL_WORLD_SIZE", distributed.world())))
