"""Random streams named by what they are for, so that any step can be repeated without its predecessors."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor


def derive(seed: int, *path: str | int) -> int:
    """A 63-bit seed for one use: the same seed and path give the same number on every machine.

    >>> derive(0, "noise", 7) == derive(0, "noise", 7), derive(0, "noise", 7) == derive(0, "noise", 8)
    (True, False)
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def prior_seed(seed: int) -> int:
    """The seed that chooses the rows of a prior of its own (`prior_data`) in a run with `seed`."""
    return derive(seed, "prior data")


def generator(device: torch.device, seed: int, *path: str | int) -> torch.Generator:
    """A fresh generator for one use, on the device; on the CPU for a device that has none of its own, such as XLA."""
    return torch.Generator(device=device if _has_generators(device.type) else "cpu").manual_seed(derive(seed, *path))


@cache
def _has_generators(kind: str) -> bool:
    try:
        torch.Generator(device=kind)
    except RuntimeError:
        return False
    return True


def draw_normal(out: Tensor, source: torch.Generator | None) -> Tensor:
    """Fill a tensor with standard normal numbers, drawn where the generator is."""
    if source is None or source.device.type == out.device.type:
        return out.normal_(generator=source)
    return out.copy_(torch.empty(out.shape, dtype=out.dtype, device=source.device).normal_(generator=source))


def seed_global(seed: int) -> None:
    """Seed torch's global generators (dropout, shuffling loaders).

    `torch.manual_seed` also queues a call for every kind of device that is not there: a millisecond and a leak each time.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


@contextmanager
def own_randomness(device: torch.device, seed: int) -> Iterator[None]:
    """Leave the caller's global random state as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        seed_global(derive(seed, "start"))
        yield
