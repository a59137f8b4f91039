"""Modes of submodules: BatchNorm measured with the batch's own statistics, and everything put back afterwards."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.parameter import is_lazy

from pactrain.problem.losses import Loss


def batch_norms(model: nn.Module) -> list[_NormBase]:
    """The layers (BatchNorm, and InstanceNorm if asked to) that keep running statistics."""
    return [m for m in model.modules() if isinstance(m, _NormBase) and m.track_running_stats]


def own_buffers(model: nn.Module) -> dict[str, Tensor]:
    """All buffers by name, but for the running statistics of `batch_norms`."""
    normed = {id(b) for m in batch_norms(model) for b in m.buffers()}
    return {name: b for name, b in model.named_buffers() if id(b) not in normed}


def trains_batch_norm(model: nn.Module) -> bool:
    """True if the network has a BatchNorm layer that is trained.  One in a frozen part only scales its inputs."""
    return any(isinstance(m, _BatchNorm) and any(p.requires_grad for p in m.parameters()) for m in model.modules())


@contextmanager
def restored_modes(model: nn.Module) -> Iterator[None]:
    """Put the train/eval mode of every submodule back on leaving."""
    modes = [(m, m.training) for m in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def restored_buffers(model: nn.Module) -> Iterator[None]:
    """Inside the block all buffers are copies, so that on leaving they are what they were, whatever was done to them."""
    kept = [(m, dict(m._buffers)) for m in model.modules()]
    copies: dict[int, Tensor] = {}
    try:
        for module, buffers in kept:
            for name, buffer in buffers.items():
                if buffer is not None and not is_lazy(buffer):
                    module._buffers[name] = copies.setdefault(id(buffer), buffer.clone())
        yield
    finally:
        for module, buffers in kept:
            module._buffers.clear()
            module._buffers.update(buffers)


@contextmanager
def restored_values(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Put the values of tensors back on leaving, bit for bit."""
    kept = [(t.detach(), t.detach().clone()) for t in tensors]
    try:
        yield
    finally:
        for t, before in kept:
            t.copy_(before)


@contextmanager
def hooked(hooks: Iterable[tuple[nn.Module, Callable[..., Any]]]) -> Iterator[None]:
    """Inside the block, each hook is called after every forward pass of its module."""
    handles = [module.register_forward_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Everything in eval mode inside the block."""
    with restored_modes(model):
        model.eval()
        yield


@contextmanager
def batch_statistics(model: nn.Module) -> Iterator[None]:
    """Eval mode, except that BatchNorm uses the batch's own statistics; its running ones come out unchanged.

    At prior draws the running statistics mean nothing: they belong to other weights.
    """
    norms = batch_norms(model)
    kept = [(m, m.track_running_stats) for m in norms]
    with restored_modes(model):
        model.eval()
        try:
            for m in norms:
                m.train()
                m.track_running_stats = False
            yield
        finally:
            for m, tracked in kept:
                m.track_running_stats = tracked


@torch.no_grad()
def estimate_batch_norm(model: nn.Module, batches: Iterable[Any], loss: Loss) -> bool:
    """Set the running statistics of BatchNorm to those of the data at the present weights.  False if there are none."""
    norms = batch_norms(model)
    if not norms:
        return False
    momenta = [m.momentum for m in norms]
    with restored_modes(model):
        model.eval()
        try:
            for m in norms:
                m.train()
                m.reset_running_stats()
                m.momentum = None  # a cumulative average: every batch counts the same
            for batch in batches:
                loss(model, batch)
        finally:
            for m, momentum in zip(norms, momenta, strict=True):
                m.momentum = momentum
    return True
