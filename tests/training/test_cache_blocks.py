"""Blocks of weights."""

from itertools import pairwise

from pactrain.training.cache_blocks import BLOCK, blocks_of


def test_blocks_hold_every_weight_once_with_its_groups() -> None:
    edges = [0, 7, 7, 9, 9 + 3 * BLOCK // 2, 9 + 3 * BLOCK // 2 + 5, 9 + 5 * BLOCK]
    groups = [slice(a, b) for a, b in pairwise(edges)]
    blocks = blocks_of(groups)
    assert [at.start for at, _ in blocks] == [0, *(at.stop for at, _ in blocks[:-1])]
    assert blocks[-1][0].stop == edges[-1]
    assert all(at.stop - at.start <= BLOCK for at, _ in blocks)
    assert len(blocks) < 8
    for at, members in blocks:
        inside = [i for i, g in enumerate(groups) if max(at.start, g.start) < min(at.stop, g.stop)]
        assert inside == [i for i in members if groups[i].stop > groups[i].start]
