"""Computing several networks, or one with different weights for each example, in one pass of vmap; in a loop where a layer does not support that."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor
from torch.func import vmap

from pactrain.runtime.gave_up import TORCHS, Refused, gave_up, is_torchs

T = TypeVar("T")


def together(work: Callable[[], T], what: str) -> T | None:
    """The result of work that uses vmap, or None if it has to be done in a loop, which gives the same and takes longer.

    Layers that torch cannot batch (recurrent ones, control flow that depends on the data) are expected.  Any other refusal by the
    network or the loss is reported.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # vmap warns where it would only loop
            return work()
    except (Refused, *TORCHS) as error:
        if not is_torchs(error):
            gave_up(
                f"{what} not computed together", error, instead="they are computed one after the other, more slowly"
            )
        return None


class Together:
    """Work that is done with vmap until that is refused once, and from then on in a loop.

    Args:
        what: The subject of the note about a refusal.
        tried: Whether vmap is tried at all.
    """

    def __init__(self, what: str, *, tried: bool) -> None:
        self._what, self.tried = what, tried

    def __call__(self, at_once: Callable[[], T], one_by_one: Callable[[], T]) -> T:
        """The result of `at_once`, or of `one_by_one` if vmap is not to be used."""
        found = together(at_once, self._what) if self.tried else None
        self.tried = found is not None
        return one_by_one() if found is None else found


def rows_of_each(call: Callable[..., Tensor], *batched: Any) -> Tensor:
    """The rows of output of all networks, one network after another."""
    outputs: Tensor = vmap(call)(*batched)
    if outputs.ndim < 2:
        raise ValueError("the output has no dimension for examples")
    return outputs.flatten(0, 1)
