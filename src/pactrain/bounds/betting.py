"""Upper bounds of a mean from independent values in [0, 1], given as a histogram: the Monte Carlo step of a certificate.

The values are i/bins, each seen `counts[i]` times, N in all.  They need not have the same distribution: m is the average of
their expectations.

Values that are 0 or 1 (bins = 1):  m ≤ kl⁻¹(mean, ln(1/δ)/N)  (Chernoff).  Any others: a bet against m.  For a stake g in (0, 1)

    E Π (1 − g (x − m)/(1 − m)) = Π (1 − g (E x − m)/(1 − m)) ≤ 1,

as the factors on the right have the average 1.  So has the average of such products over stakes fixed in advance, and it reaches
1/δ with a probability of at most δ.  Each factor grows with m, so the bound is the smallest m at which the average is 1/δ.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pactrain.bounds.kl import kl_inverse

STAKES = tuple(1 / (1 + math.exp(0.75 * i - 4)) for i in range(15))
"""From 0.98, for values of little spread, to 0.0015, for millions of values."""

ROUNDING = 8e-16
"""Relative error of a term in the logarithm of a product, twice over."""

SLACK = 1e-12
"""By how much a bound is raised, relatively, so that others can check it without finding its very last digits."""


@dataclass(frozen=True)
class Histogram:
    """Values i/bins, each seen `counts[i]` times."""

    bins: int
    counts: Mapping[int, int]

    @property
    def number(self) -> int:
        """How many values there are."""
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return sum(i * count for i, count in self.counts.items()) / (self.bins * self.number)

    @property
    def text(self) -> str:
        """The counts as the record of a certificate has them.

        >>> Histogram(32, {0: 490, 3: 10}).text
        '0:490 3:10'
        """
        return " ".join(f"{i}:{count}" for i, count in sorted(self.counts.items()))

    @classmethod
    def read(cls, bins: int, text: str) -> "Histogram":
        """The inverse of `text`."""
        pairs = [part.split(":") for part in text.split(" ")]
        return cls(bins, {int(i): int(count) for i, count in pairs})


def mean_bound(values: Histogram, delta: float) -> float:
    """Upper bound of the mean that fails with a probability of at most `delta`; never rounded down.

    >>> round(mean_bound(Histogram(1, {0: 490, 1: 10}), 0.01), 4), round(mean_bound(Histogram(2, {0: 490, 1: 8, 2: 2}), 0.01), 4)
    (0.0452, 0.0333)
    """
    counts, bins, number = values.counts, values.bins, values.number
    if not number or min(counts.values()) < 0 or not 0 <= min(counts) <= max(counts) <= bins or not 0 < delta < 1:
        raise ValueError(f"{number} values in {bins} bins at δ = {delta} bound no mean")
    if bins == 1:
        return kl_inverse(counts.get(1, 0) / number, -math.log(delta) / number)
    if min(counts) == bins:
        return 1.0
    pairs = [(i / bins, count) for i, count in counts.items()]
    bound = _root(lambda m: _log_wealth(pairs, m, 0.0) + math.log(delta), values.mean, 1.0)
    slack = SLACK
    while bound * (1 + slack) < 1 and _log_wealth(pairs, bound * (1 + slack), ROUNDING) < -math.log(delta):
        slack *= 2
    return min(1.0, bound * (1 + slack))


@lru_cache(maxsize=256)
def risk_bound(bins: int, counts: str, values: float, delta: float) -> float:
    """Upper bound of a risk on the counted examples from what was measured under noise.

    bins:   of the histogram `counts`, in the words of a record.
    values: examples measured, divided by the size of the largest chunk; its values are sums over chunks divided by that size.
    delta:  probability with which it may fail.
    """
    found = Histogram.read(bins, counts)
    if not 0 < values <= found.number:
        raise ValueError(f"{found.number} values cannot count as {values}")
    bound = mean_bound(found, delta)
    if values == found.number:
        return bound
    return min(
        1.0, math.nextafter(bound * found.number / values, math.inf)
    )  # some chunks were smaller than the largest


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing function changes its sign, nearly: by secants, each end's value halved while it stays (Illinois)."""
    high = math.nextafter(high, low)
    at_low, at_high = of(low), of(high)
    if at_high <= 0:
        return 1.0
    while high - low > 1e-13 * high:
        middle = high - at_high * (high - low) / (at_high - at_low)
        middle = middle if low < middle < high else 0.5 * (low + high)
        if not low < middle < high:
            break
        found = of(middle)
        if found > 0:
            high, at_high, at_low = middle, found, 0.5 * at_low
        else:
            low, at_low, at_high = middle, found, 0.5 * at_high
    return high


def _log_wealth(values: Sequence[tuple[float, int]], m: float, rounding: float) -> float:
    """Logarithm of the average of the products over all stakes, less what rounding may have added."""
    logs = [_log_product(values, m, stake, rounding) for stake in STAKES]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs) / len(logs)) - 200 * rounding


def _log_product(values: Sequence[tuple[float, int]], m: float, stake: float, rounding: float) -> float:
    rate = stake / (1 - m)
    terms = [count * math.log1p(rate * (m - x)) for x, count in values]
    if not rounding:
        return math.fsum(terms)
    lost = [rate * (x - m) for x, _ in values]
    error = sum(count * abs(x) / (1 - x) for x, (_, count) in zip(lost, values, strict=True)) + sum(map(abs, terms))
    return math.fsum(terms) - rounding * error
