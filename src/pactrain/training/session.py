"""The surroundings of a run: device, seeds, threads and notes are set up for it and restored afterwards."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from pactrain.problem.losses import AnyLoss
from pactrain.problem.module_modes import restored_modes
from pactrain.problem.read import Problem, read_problem
from pactrain.problem.threads import threads_for
from pactrain.runtime import distributed
from pactrain.runtime.devices import fresh_casts
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.events import Callback, Event
from pactrain.runtime.gave_up import collected
from pactrain.runtime.progress import watched
from pactrain.runtime.seeds import own_randomness
from pactrain.training.options import Options


@contextmanager
def session(model: nn.Module, options: Options) -> Iterator[Options]:
    """Bring the network to its device, and keep randomness, modes and autocast to the run inside the block.

    Args:
        model: The network that is to be trained.
        options: What the caller asked for.

    Yields:
        The same options, with `skipped_rules` and `until_end` at work, and a bar among the callbacks if somebody is looking.

    Raises:
        PactrainError: This is not a network that can be trained.
    """
    check_model(model)
    model.to(options.where)
    distributed.same_weights(model)
    with (
        own_randomness(options.where, options.seed),
        restored_modes(model),
        fresh_casts(),
        collected() as skipped_rules,
        ExitStack() as until_end,
    ):
        progress = False if distributed.rank() else options.progress
        callbacks = until_end.enter_context(watched(options.callbacks, progress=progress))
        noticed = [_noticing(model, callback, options.changed) for callback in callbacks]
        yield replace(options, callbacks=noticed, skipped_rules=skipped_rules, until_end=until_end)


def _noticing(model: nn.Module, callback: Callback, changed: list[str]) -> Callback:
    """The callback, after which the phase is noted if the network is another than before."""

    def heard(event: Event) -> None:
        if event.phase in ("certify", "report"):
            callback(event)
            return
        before = [t.detach().clone() for t in (*model.parameters(), *model.buffers())]
        callback(event)
        now = (*model.parameters(), *model.buffers())
        if len(now) != len(before) or not all(map(torch.equal, now, before)):
            changed.append(event.phase)

    return heard


@contextmanager
def reading(
    model: nn.Module, data: Any, test: Any, *, loss: str | AnyLoss | None, options: Options
) -> Iterator[Problem]:
    """Read the problem; inside the block torch has as many threads as the problem is worth."""
    problem = read_problem(model, data, test, options.reading(loss))
    with threads_for(model, problem.training_sample(), problem.loss):
        yield problem


def check_model(model: nn.Module) -> None:
    """Refuse what is no network, and weights whose type is too narrow.

    Raises:
        PactrainError: With what to do about it.
    """
    if not isinstance(model, nn.Module):
        what = f"the class {model.__name__}; make a network of it first" if isinstance(model, type) else repr(model)
        raise PactrainError(f"model must be a torch module, and is {what}")
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in model.parameters()):
        raise PactrainError("the network has lazy layers whose sizes are not known yet; call it once on a batch first")
    if any(t.is_meta for t in (*model.parameters(), *model.buffers())):
        raise PactrainError(
            "the network has weights on the meta device, which hold no numbers; build it on a real device"
        )
    if any(p.dtype == torch.float16 and p.requires_grad for p in model.parameters()):
        raise PactrainError(
            "the network has weights in float16, whose range is too small for the stds; use bfloat16 or float32"
        )
