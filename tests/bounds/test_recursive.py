"""The recursive bound: known answers, its decomposition, and records that cannot be."""

from itertools import product

import pytest

from pactrain.bounds.betting import risk_bound
from pactrain.bounds.kl import kl_bound
from pactrain.bounds.recursive import GAMMA, WEIGHTS, Level, read_levels, recursive_bound
from tests.oracle.formulas import VALUES

FIRST = Level(60_000, 600.0, 9.5, 60_000.0, 1, ("0:42000 1:18000",))
SECOND = Level(30_000, 60.0, 0.0, 30_000.0, 1, ("0:4500 1:25500", "0:26500 1:3500", "0:29500 1:500"))
THIRD = Level(15_000, 6.5, 0.0, 460.25, 32, ("20:100 32:369", "0:300 3:169", "0:440 1:29"))
LEVELS = [FIRST, SECOND, THIRD]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("parts", [3, 6])
@pytest.mark.parametrize("delta", [0.04, 1e-9])
def test_known_answers(count: int, parts: int, delta: float) -> None:
    text = " / ".join(level.text for level in LEVELS[:count])
    inputs = {"levels": text, "parts": parts, "delta_draws": 0.01, "delta_bound": delta}
    expected = VALUES["recursive"](inputs)
    assert recursive_bound(LEVELS[:count], parts, 0.01, delta) == pytest.approx(expected, rel=1e-9)


def test_the_excess_is_the_sum_of_its_thresholds() -> None:
    """F = 1[h wrong] − γ 1[h' wrong] for all four cases, from F_1, F_2 and F_3 as they are measured."""
    for now, before in product((0, 1), (0, 1)):
        excess = now - GAMMA * before
        parts = [now >= before, now == 1, now == 1 and before == 0]
        assert parts == [excess >= 0, excess >= 1 - GAMMA, excess >= 1]
        assert -GAMMA + sum(w * part for w, part in zip(WEIGHTS, parts, strict=True)) == excess


def test_each_number_has_its_price() -> None:
    """The first level pays δ/T, each of the three of a later one δ/3T, in the bound and in the measuring."""
    one = recursive_bound([FIRST], 6, 0.01, 0.04)
    risk = risk_bound(1, FIRST.counts[0], FIRST.values, 0.01 / 6)
    assert one == kl_bound(risk, 609.5, 60_000, 0.04 / 6)
    terms = [kl_bound(risk_bound(1, c, 30_000.0, 0.01 / 18), 60.0, 30_000, 0.04 / 18) for c in SECOND.counts]
    assert recursive_bound([FIRST, SECOND], 6, 0.01, 0.04) == pytest.approx(
        0.5 * sum(terms) - 0.5 + 0.5 * one, rel=1e-12
    )


def test_it_stays_between_0_and_1() -> None:
    bad = Level(10, 50.0, 0.0, 10.0, 1, ("1:10", "1:10", "1:10"))
    assert recursive_bound([FIRST, bad], 2, 0.01, 0.04) == 1.0
    odd = Level(10**6, 0.0, 0.0, 1e6, 1, ("0:1000000", "0:1000000", "0:1000000"))  # impossible: it beats nobody
    assert recursive_bound([FIRST, odd], 2, 0.01, 0.04) == 0.0


def test_text() -> None:
    assert read_levels(" / ".join(level.text for level in LEVELS)) == LEVELS


@pytest.mark.parametrize(("levels", "parts"), [([], 2), (LEVELS, 2), ([SECOND], 2), ([FIRST, FIRST], 2)])
def test_what_cannot_be(levels: list[Level], parts: int) -> None:
    with pytest.raises(ValueError, match="too few or too many"):
        recursive_bound(levels, parts, 0.01, 0.04)
