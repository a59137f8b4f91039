"""Standard normal noise for many weights, drawn on two threads; torch alone draws it on one."""

from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

import torch
from torch import Tensor

STREAMS = 2
"""Streams of noise, each for one part of the weights; a fixed number, so that no result depends on the machine."""

LARGE = 1 << 19
"""Entries from which starting threads pays."""


def fill_normal(out: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fill `out` with standard normal noise that follows from the generator (torch's own if None)."""
    if out.device.type != "cpu" or out.numel() < LARGE:
        return out.normal_(generator=generator)
    seeds = torch.randint(0, 2**62, (STREAMS,), generator=generator).tolist()
    parts = out.view(-1).tensor_split(STREAMS)

    def fill(part: Tensor, seed: int) -> None:
        part.normal_(generator=torch.Generator().manual_seed(seed))

    if torch.get_num_threads() == 1:
        for part, seed in zip(parts, seeds, strict=True):
            fill(part, seed)
    else:
        jobs = [threads().submit(fill, part, seed) for part, seed in zip(parts, seeds, strict=True)]
        wait(jobs)
        for job in jobs:
            job.result()
    return out


@cache
def threads() -> ThreadPoolExecutor:
    """One thread a stream, shared by everything that draws noise."""
    return ThreadPoolExecutor(STREAMS, thread_name_prefix="pactrain")
