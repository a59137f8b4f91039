"""Work on all weights block by block, so that a block's vectors stay in the cache from the first operation to the last.

The blocks are shared out among streams, each with vectors to calculate in and a source of noise of its own; threads take a stream
each, and the result is the same on any number of them.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from itertools import pairwise

import torch
from torch import Tensor

from pactrain.distributions.sampling import STREAMS, threads
from pactrain.runtime.seeds import generator

BLOCK = 262_144
"""Most weights in a block on a CPU; in smaller ones the calls cost more than the memory saves.  A network no larger is one block."""

Block = tuple[slice, range]
"""Where it stands, and the groups it holds weights of."""

BlockWork = Callable[[slice, range, tuple[Tensor, ...], torch.Generator | None], None]


class Blocks:
    """The blocks of flat vectors that are as long as `like`."""

    def __init__(self, groups: Sequence[slice], like: Tensor) -> None:
        self._like, on_cpu = like, like.device.type == "cpu"
        self.only_one = len(like) <= BLOCK
        self.streams = self._shared_out(groups, on_cpu)
        keeps = self.only_one or on_cpu  # blocks elsewhere are as large as groups
        # Kept, as memory that is asked for anew is also mapped anew, which takes longer than to fill it.
        self.scratch = [self._new_scratch(number) for number in range(len(self.streams))] if keeps else []

    def _shared_out(self, groups: Sequence[slice], on_cpu: bool) -> list[list[Block]]:
        """The blocks of every stream, of about the same length."""
        size = len(self._like)
        if self.only_one:
            return [[(slice(0, size), range(len(groups)))]]
        if not on_cpu:
            return [[(at, range(i, i + 1)) for i, at in enumerate(groups)]]
        blocks = blocks_of(groups)
        return [[b for b in blocks if (b[0].start + b[0].stop) * STREAMS // (2 * size) == i] for i in range(STREAMS)]

    def _new_scratch(self, number: int) -> tuple[Tensor, ...]:
        """Three vectors as long as the longest block of a stream."""
        largest = max((at.stop - at.start for at, _ in self.streams[number]), default=0)
        return tuple(self._like.new_empty(largest) for _ in range(3))

    def each(self, work: BlockWork, seed: int | None = None) -> None:
        """Do `work(where, groups, scratch, source of noise)` for every block."""
        if len(self.streams) == 1 or torch.get_num_threads() == 1:
            for number in range(len(self.streams)):
                self._do_stream(number, work, seed)
            return
        jobs = [threads().submit(self._do_stream, number, work, seed) for number in range(len(self.streams))]
        try:
            for job in jobs:
                job.result()
        finally:
            wait(jobs)

    @torch.no_grad()
    def _do_stream(self, number: int, work: BlockWork, seed: int | None) -> None:
        source = None
        if seed is not None:
            source = generator(self._like.device, seed, number)
        vectors = self.scratch[number] if self.scratch else self._new_scratch(number)
        for at, groups in self.streams[number]:
            work(at, groups, tuple(v[: at.stop - at.start] for v in vectors), source)


def blocks_of(groups: Sequence[slice]) -> list[Block]:
    """All weights in parts of at most `BLOCK`, each with its groups: small groups together, large ones in pieces.

    >>> blocks_of([slice(0, 10), slice(10, 30), slice(30, 30 + 2 * BLOCK)])[0]
    (slice(0, 30, None), range(0, 2))
    """
    blocks: list[Block] = []
    for i, at in enumerate(groups):
        if blocks and at.stop - blocks[-1][0].start <= BLOCK:
            last, members = blocks.pop()
            blocks.append((slice(last.start, at.stop), range(members.start, i + 1)))
            continue
        count = max(1, math.ceil((at.stop - at.start) / BLOCK))
        edges = [at.start + (at.stop - at.start) * k // count for k in range(count + 1)]
        blocks += [(slice(a, b), range(i, i + 1)) for a, b in pairwise(edges)]
    return blocks
