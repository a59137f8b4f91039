"""A cache of one value computed from a tensor, valid while the tensor is unchanged."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """Remembers one value; copies and pickles of it start empty, for they may meet other tensors."""

    def __init__(self) -> None:
        self._kept: tuple[Tensor, int, Hashable, Value] | None = None

    def of(self, tensor: Tensor, compute: Callable[[], Value], *, also: Hashable = None) -> Value:
        """What `compute` gives for `tensor` and whatever else, named in `also`, it depends on."""
        if (
            tensor.is_inference() or torch.is_inference_mode_enabled()
        ):  # such tensors have no version, and no gradient later
            return compute()
        kept = self._kept
        if kept is None or kept[0] is not tensor or kept[1:3] != (tensor._version, also):
            self._kept = kept = (tensor, tensor._version, also, compute())
        return kept[3]

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """An empty one."""
        return type(self), ()
