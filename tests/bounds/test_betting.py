"""Means from draws, against what bets are worth in 80-digit arithmetic."""

from typing import Any

import mpmath
import pytest
from mpmath import mpf

from pactrain.bounds.betting import STAKES, Histogram, mean_bound, risk_bound
from tests.bounds.many_digits import inverse


def wealth(counts: dict[int, int], bins: int, m: Any) -> Any:
    """What an equal share on each stake has become after betting against the mean m on every value."""
    total = mpf(0)
    for stake in STAKES:
        product = mpf(1)
        for i, count in counts.items():
            product *= (1 - mpf(stake) * (mpf(i) / bins - m) / (1 - m)) ** count
        total += product
    return total / len(STAKES)


@pytest.mark.parametrize(
    ("bins", "counts"),
    [(32, {0: 300, 1: 150, 2: 40, 5: 1}), (1000, {3: 5000, 900: 20}), (2, {0: 7}), (3, {3: 4, 2: 1}), (10, {0: 10**6, 1: 3})],
)  # fmt: skip
def test_a_mean_by_betting(bins: int, counts: dict[int, int]) -> None:
    found = mean_bound(Histogram(bins, counts), 0.01)
    assert Histogram(bins, counts).mean < found < 1
    assert wealth(counts, bins, mpf(found)) >= 100
    assert wealth(counts, bins, mpf(found) * (1 - mpf("1e-10"))) < 100


def test_stakes_are_those_of_the_page() -> None:
    assert pytest.approx([float(1 / (1 + mpmath.exp(mpf(3 * i) / 4 - 4))) for i in range(15)], rel=1e-14) == STAKES


def test_a_mean_of_zeros_and_ones() -> None:
    found = mean_bound(Histogram(1, {0: 270, 1: 30}), 0.01)
    assert found == pytest.approx(float(inverse(0.1, mpmath.log(1 / mpf(0.01)) / 300)), rel=1e-12)
    assert mean_bound(Histogram(1, {1: 5}), 0.01) == mean_bound(Histogram(7, {7: 5}), 0.01) == 1
    assert mean_bound(Histogram(1, {0: 50}), 0.1) == pytest.approx(1 - 0.1 ** (1 / 50))


def test_what_bounds_no_mean() -> None:
    for bins, counts, delta in ((1, {0: 0}, 0.1), (2, {3: 1}, 0.1), (2, {-1: 1}, 0.1), (2, {0: -1, 1: 3}, 0.1),
                                (2, {0: 1}, 0.0), (2, {0: 1}, 1.0)):  # fmt: skip
        with pytest.raises(ValueError, match="no mean"):
            mean_bound(Histogram(bins, counts), delta)


def test_histograms() -> None:
    found = Histogram(32, {3: 10, 0: 490})
    assert (found.text, found.number, found.mean) == ("0:490 3:10", 500, 30 / 32 / 500)
    assert Histogram.read(32, "0:490 3:10") == Histogram(32, {0: 490, 3: 10})


def test_chunks_that_are_smaller_than_the_largest_make_a_risk_larger() -> None:
    text = "0:400 1:80 3:20"
    whole = mean_bound(Histogram.read(32, text), 0.01)
    assert risk_bound(32, text, 500.0, 0.01) == whole
    assert risk_bound(32, text, 400.0, 0.01) == pytest.approx(1.25 * whole, rel=1e-12)
    assert risk_bound(32, "32:500", 400.0, 0.01) == 1.0
    for values in (0.0, 501.0):
        with pytest.raises(ValueError, match="500 values cannot count as"):
            risk_bound(32, text, values, 0.01)
