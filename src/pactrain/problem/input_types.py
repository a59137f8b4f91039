"""Converting integer inputs and targets to floating point where the network or the loss needs it: pixels, counts, prices."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pactrain.problem.batches import Batches
from pactrain.problem.call_network import predict_batch
from pactrain.problem.losses import Loss, per_example
from pactrain.problem.module_modes import restored_buffers, restored_modes
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused, gave_up, refusing

TRIED = 2
"""Rows that the network is tried with."""

MOST = 4
"""Inputs in whole numbers up to which any of them may be changed without the others."""


def as_network_takes(model: nn.Module, batches: Batches, loss: Loss) -> Batches:
    """The data with amounts to be learned as floating-point numbers, and those of the inputs that the network takes in no other way, or
    that it makes into such numbers itself."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    table = batches.table
    if table is None or dtype is None:
        return batches
    *inputs, target = table.tensors
    if loss.task == "regression" and _whole(target):
        target = target.to(dtype)
    whole = [i for i, part in enumerate(inputs) if _whole(part)]
    if whole:
        inputs = _inputs(model, loss, inputs, target, whole, dtype)
    table.tensors = (*inputs, target)
    return batches


def _whole(part: Tensor) -> bool:
    return not part.is_floating_point() and not part.is_complex()


def _inputs(
    model: nn.Module, loss: Loss, inputs: list[Tensor], target: Tensor, whole: list[int], dtype: torch.dtype
) -> list[Tensor]:
    """The inputs with as few of the `whole` ones changed as the network asks for."""

    def changed(which: Sequence[int]) -> list[Tensor]:
        return [part.to(dtype) if i in which else part for i, part in enumerate(inputs)]

    first = _tried(model, loss, inputs, target)
    if isinstance(first, Tensor):  # a network that looks tokens up takes nothing else
        same = _tried(model, loss, floats := changed(whole), target)
        return floats if isinstance(same, Tensor) and torch.equal(first, same) else inputs
    sizes = range(1, len(whole)) if len(whole) <= MOST else ()
    for which in itertools.chain.from_iterable(itertools.combinations(whole, size) for size in sizes):
        if isinstance(_tried(model, loss, some := changed(which), target), Tensor):
            return some
    last = _tried(model, loss, floats := changed(whole), target)
    if isinstance(last, Tensor):
        return floats
    # if nothing will do, training tells what is wrong beside the types
    about_types = "type" in str(first)
    what = f"Which type of number the network takes was not found with {TRIED} rows"
    kept = "inputs in whole numbers are " + (
        "trained on as floating-point numbers" if about_types else "left as they are"
    )
    gave_up(what, first, instead=kept)
    return floats if about_types else inputs


@torch.no_grad()
def _tried(model: nn.Module, loss: Loss, inputs: list[Tensor], target: Tensor) -> Tensor | Exception:
    """What a few rows give in eval mode, or why they give nothing, there or in training."""
    batch = tuple(part[:TRIED] for part in (*inputs, target))
    try:
        with restored_modes(model), restored_buffers(model), torch.random.fork_rng(devices=[]):
            for mode in (True, False):
                model.train(mode)
                if loss.of_outputs:
                    out = predict_batch(refusing(model), batch)[0]
                else:
                    out = per_example(loss.guarded(), refusing(model), batch)
    except PactrainError as error:
        return error.error if isinstance(error, Refused) else error
    return out
