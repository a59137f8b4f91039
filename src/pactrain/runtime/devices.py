"""Choosing the device to compute on, and returning freed memory to the operating system."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from pactrain.runtime.errors import PactrainError


def choose_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        if chosen.type == "mps":
            raise PactrainError(
                f"device {device!r}: Apple's GPUs have no float64, in which bounds are computed; use cpu or auto"
            )
        if chosen.type == "meta":
            raise PactrainError("device 'meta' holds no numbers; use cpu, cuda or auto")
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise PactrainError(
                f"device {device!r}: this machine, or this build of torch, has no CUDA; use cpu or auto"
            )
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise PactrainError(f"device {device!r} cannot be used ({reason}); use cpu, cuda or auto") from error
    return chosen


@contextmanager
def fresh_casts() -> Iterator[None]:
    """Inside the block autocast casts weights each time they are used: it would otherwise go on with those it cast first."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def give_memory_back() -> None:
    """Return what the scan and the leave-one-out have freed to the machine; glibc keeps pieces below 32 MB to itself."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
