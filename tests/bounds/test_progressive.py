"""The bound of a network that is judged block by block."""

import math

import pytest

from pactrain import PactrainError
from pactrain.bounds.progressive import Block, blocks_text, progressive_bound, read_blocks
from tests.oracle.formulas import VALUES

CASES: list[list[Block]] = [
    [(90, 1), (225, 5), (224, 4)],
    [(1, 0), (1, 0)],
    [(6000, 110), (30_000, 546)],
    [(43, 43), (100, 60), (113, 0)],
]


@pytest.mark.parametrize("blocks", CASES)
@pytest.mark.parametrize("delta", [0.05, 1e-9, 0.9])
def test_it_is_where_the_supermartingale_reaches_its_limit(blocks: list[Block], delta: float) -> None:
    n = sum(m for m, _ in blocks[1:])
    expected = VALUES["progressive"]({"blocks": blocks_text(blocks), "n": n, "delta_bound": delta})
    assert progressive_bound(blocks, delta) == pytest.approx(expected, rel=1e-9)


def test_known_numbers() -> None:
    assert progressive_bound([(6000, 110), (30_000, 546)], 0.05) == pytest.approx(0.02022, abs=5e-6)
    assert progressive_bound([(10, 0), (40, 0)], 0.05) == pytest.approx(
        -math.expm1(-math.log(20) / 40) / -math.expm1(-math.sqrt(2 / 3 * math.log(20)))
    )
    assert progressive_bound([(10, 0), (4, 4)], 0.05) == 1.0


def test_blocks_are_counted_together_and_the_first_is_not() -> None:
    assert progressive_bound([(90, 1), (449, 9)], 0.05) == progressive_bound([(90, 1), (225, 5), (224, 4)], 0.05)
    assert progressive_bound([(900, 1), (449, 9)], 0.05) == progressive_bound([(90, 1), (449, 9)], 0.05)
    assert progressive_bound([(90, 1), (449, 10)], 0.05) > progressive_bound([(90, 1), (449, 9)], 0.05)


@pytest.mark.parametrize(
    "blocks", [[], [(90, 1)], [(90, 1), (0, 0)], [(90, 1), (5, 6)], [(90, -1), (5, 1)], [(1, 2), (5, 1)]]
)
def test_what_cannot_be(blocks: list[Block]) -> None:
    with pytest.raises(PactrainError, match="bound no risk"):
        progressive_bound(blocks, 0.05)


def test_text() -> None:
    assert read_blocks(blocks_text(CASES[0])) == CASES[0]
