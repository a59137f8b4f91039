"""Coverage of the progressive bound where the risk of each network depends on the errors of those before."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from pactrain.bounds.progressive import blocks_text
from pactrain.certification.statement import FORMULAS
from tests.statistics.simulations import holds

SETS, BLOCKS, ROWS = 3000, 10, 45
DELTA = 0.1

Risk = Callable[[int, int], float]
"""Of the network in force, from the number of errors before it and of blocks met."""

WAYS: dict[str, Risk] = {
    "the same all along": lambda errors, block: 0.05,
    "learning": lambda errors, block: 0.1 / (1 + block),
    "bold after luck": lambda errors, block: 0.2 if errors < 0.05 * ROWS * block else 0.01,
    "hopeless once it is behind": lambda errors, block: (
        1.0 if block == BLOCKS and errors <= 0.04 * ROWS * BLOCKS else 0.05
    ),
}


def simulate(risk: Risk, seen: float, seed: int) -> NDArray[np.float64]:
    """Bound less truth for each data set; blocks after the first show this part of their errors."""
    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(SETS):
        blocks, risks, errors = [], [], 0
        for block in range(BLOCKS + 1):
            risks.append(risk(errors, block))
            found = int(rng.binomial(ROWS, risks[-1]))
            blocks.append((ROWS, round(seen * found) if block else found))
            errors += found
        n = BLOCKS * ROWS
        bound = FORMULAS["progressive"](blocks=blocks_text(blocks), n=n, delta_bound=DELTA)
        gaps.append(bound - float(np.mean(risks[1:])))
    return np.array(gaps)


@pytest.mark.parametrize("way", WAYS)
def test_it_holds_however_the_networks_follow_from_each_other(way: str) -> None:
    assert holds(simulate(WAYS[way], 1.0, seed=1), 0.0, DELTA)


@pytest.mark.parametrize("way", ["the same all along", "bold after luck"])
def test_it_breaks_where_blocks_were_trained_on_before_they_judge(way: str) -> None:
    assert not holds(simulate(WAYS[way], 0.5, seed=1), 0.0, DELTA)
