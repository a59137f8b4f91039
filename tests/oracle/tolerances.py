"""How far the inputs of a certificate may be from those that the oracle computes, and why.  Nothing of pactrain is imported."""

from typing import NamedTuple

from tests.oracle.formulas import counted


class Number(NamedTuple):
    """What an input should be, and how far the record's may be from it."""

    value: float
    relative: float
    absolute: float = 0.0

    def is_near(self, found: float) -> bool:
        return abs(found - self.value) <= self.absolute + self.relative * abs(self.value)


class Histogram(NamedTuple):
    """What a histogram should be.  Float32 may prefer another class for three examples, and move a value near an edge to the next bin."""

    value: str
    bins: int

    def is_near(self, found: str) -> bool:
        mine, theirs = counted(self.value), counted(found)
        number = sum(mine.values())
        moved = sum(abs(mine.get(i, 0) - theirs.get(i, 0)) for i in {*mine, *theirs})
        mass = sum(i * (theirs.get(i, 0) - mine.get(i, 0)) for i in {*mine, *theirs})
        most = 6 + 0.02 * number * (self.bins == 1000)  # both where a value is missing and where it is too many
        return (
            sum(theirs.values()) == number and moved <= most and abs(mass) <= max(4 * self.bins / 32, 4, 0.001 * number)
        )


Inputs = dict[str, "Number | Histogram"]


def exact(value: float) -> Number:
    """Float64 arithmetic on both sides from the same stored numbers: only the order of operations may differ."""
    return Number(value, 1e-9)


def single(value: float, *, absolute: float = 0.0) -> Number:
    """The library's forward passes and terms of sums over weights are in float32 (six digits), ours in float64; 3e-7 was the most seen."""
    return Number(value, 1e-6, absolute)


def share(value: float, count: int) -> Number:
    """A share of wrong predictions among `count`: where two scores nearly agree, float32 may prefer the other; up to three may."""
    return Number(value, 1e-9, 3 / count)
