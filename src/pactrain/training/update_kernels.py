"""The formulas of a step (`update_formulas.py`) as compiled kernels, which take one pass over memory each."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from subprocess import SubprocessError
from typing import Any

import torch
from torch import Tensor

from pactrain.runtime.gave_up import gave_up
from pactrain.training.update_formulas import Moves, Numbers, Vectors, draw_weights, update


@dataclass(frozen=True)
class Kernels:
    """Compiled functions for vectors of one dtype on one device and one kind of moves.

    Both take vectors, the prior's precision and `Numbers` as one tensor.
    """

    draw: Callable[[Vectors, Tensor, Tensor], None]  # `Vectors.draw` holds standard normal noise and becomes a draw
    update: Callable[[Vectors, Tensor, Tensor], None]


def kernels(dtype: torch.dtype, device: str, moves: Moves) -> Kernels | None:
    """The compiled functions; None where torch.compile does not work (no C++ compiler, say)."""
    found = _compiled(dtype, device, moves)
    if isinstance(found, Kernels):
        return found
    gave_up("Training steps were not compiled", found, instead="they are made of plain operations, which take longer")
    return None


@functools.cache
def _compiled(dtype: torch.dtype, device: str, moves: Moves) -> Kernels | Exception:
    """Compiled and tried out once a process, or why that failed."""

    def drawn(v: Vectors, precision: Tensor, numbers: Tensor) -> None:
        draw_weights(v.curvature, v.means, v.draw, precision, numbers[0], out=v.draw)

    def updated(v: Vectors, precision: Tensor, numbers: Tensor) -> None:
        update(v, precision, Numbers(*numbers.unbind()), moves)

    def compiled(function: Callable[..., None]) -> Callable[..., None]:
        kernel: Any = torch.compile(function, dynamic=True, fullgraph=True)
        for size in (96, 160):
            ones = Vectors(*(torch.ones(2 * size, dtype=dtype, device=device) for _ in Vectors._fields))
            precision, numbers = (
                torch.ones(1, dtype=dtype, device=device),
                torch.ones(len(Numbers._fields), device="cpu").to(ones.means),
            )
            kernel(ones.part(slice(0, size)), precision[0], numbers)
        return kernel  # type: ignore[no-any-return]

    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return Kernels(compiled(drawn), compiled(updated))
    except (
        RuntimeError,
        OSError,
        ImportError,
        SubprocessError,
    ) as error:  # those of torch's compiler are RuntimeErrors
        return error.with_traceback(None)
