"""Recursive PAC-Bayes (Wu et al. 2024): a bound whose prior is learned part by part, while every example still counts.

The examples are cut into parts S_1 … S_T.  Q_0 is chosen without any, and Q_t is trained on S_1 … S_t, from Q_(t−1).  The examples that Q_(t−1)
has not seen are U_t = S_t ∪ … ∪ S_T, n_t of them.  With γ = ½, the risk of Q_t is

    L(Q_t) = E[F] + γ L(Q_(t−1)),    F = 1[h wrong] − γ 1[h' wrong],    h ~ Q_t,  h' ~ Q_(t−1),

and F, which is −γ, 0, 1 − γ or 1, is  −γ + γ F_1 + (1 − γ) F_2 + γ F_3  with  F_1 = 1[F ≥ 0], F_2 = 1[F ≥ 1 − γ], F_3 = 1[F ≥ 1]:

    F_1: not (h right and h' wrong),    F_2: h wrong,    F_3: h wrong and h' right.

Given S_1 … S_(t−1), the pair (h, h') has the prior Q_(t−1) × Q_(t−1), from which Q_t × Q_(t−1) diverges by KL(Q_t ‖ Q_(t−1)), and U_t is
independent of it.  So with probability 1 − δ/T, δ/3T for each j, for every Q_t

    E[F] ≤ E_t = −γ + Σ_j α_j kl⁻¹(F̂_j, (KL(Q_t ‖ Q_(t−1)) + ln(3T ξ(n_t)/δ)) / n_t),    α = (γ, 1 − γ, γ),

F̂_j being the mean of F_j over U_t and the draws, and  L(Q_1) ≤ B_1 = kl⁻¹(error of Q_1 on all, (KL(Q_1 ‖ Q_0) + ln(T ξ(n_1)/δ)) / n_1),
so that  L(Q_t) ≤ B_t = E_t + γ B_(t−1).  The F̂_j are measured with draws, for which each pays its share of a δ of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pactrain.bounds.betting import risk_bound
from pactrain.bounds.kl import kl_bound

GAMMA = 0.5
"""Part of the risk of the networks before that a level pays for."""

WEIGHTS = (GAMMA, 1 - GAMMA, GAMMA)

SLACK = 1e-14
"""By how much each level is raised, so that no rounding error of its sum makes it too small."""


@dataclass(frozen=True)
class Level:
    """What is measured of one Q_t.

    Attributes:
        n: Examples that judge it: its own part, and all later ones.
        kl: KL(Q_t ‖ Q_(t−1)) in nats.
        nats: Price in nats of what the examples have chosen of Q_0; 0 for all levels but the first.
        values: Examples measured, divided by the size of the largest chunk (`Risks`).
        bins: Of the histograms.
        counts: Histograms: of the errors (the first level), or of F_1, F_2 and F_3.
    """

    n: int
    kl: float
    nats: float
    values: float
    bins: int
    counts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The level as the record of a certificate has it."""
        return ";".join([str(self.n), repr(self.kl), repr(self.nats), repr(self.values), str(self.bins), *self.counts])

    @classmethod
    def read(cls, text: str) -> "Level":
        """The inverse of `text`."""
        n, kl, nats, values, bins, *counts = text.split(";")
        return cls(int(n), float(kl), float(nats), float(values), int(bins), tuple(counts))


def read_levels(text: str) -> list[Level]:
    """Levels from the record of a certificate.

    >>> [level.n for level in read_levels("8;0.5;0.0;8.0;1;0:7 1:1 / 4;0.25;0.0;4.0;1;1:4;0:4;0:4")]
    [8, 4]
    """
    return [Level.read(part) for part in text.split(" / ")]


def recursive_bound(levels: Sequence[Level], parts: int, delta_draws: float, delta_bound: float) -> float:
    """Upper bound of the 0-1 error of the last level's randomised predictor.

    Args:
        levels: From the first on; fewer than `parts` if training ended before.
        parts: T, the levels that δ is shared out to.
        delta_draws: Probability with which the measuring may fail, at any level.
        delta_bound: Probability with which the bound may fail, at any level.

    Returns:
        The bound, between 0 and 1.

    Raises:
        ValueError: There are no levels, more than `parts`, or one has another number of histograms than it should.

    Example:
        >>> first = Level(60_000, 600.0, 0.0, 60_000.0, 1, ("0:42000 1:18000",))
        >>> second = Level(30_000, 60.0, 0.0, 30_000.0, 1, ("0:4500 1:25500", "0:26500 1:3500", "0:29500 1:500"))
        >>> round(recursive_bound([first], 2, 0.01, 0.04), 3), round(recursive_bound([first, second], 2, 0.01, 0.04), 3)
        (0.374, 0.216)
    """
    if not 0 < len(levels) <= parts or [len(level.counts) for level in levels] != [1] + (len(levels) - 1) * [3]:
        raise ValueError(f"{len(levels)} levels of {parts}, or their histograms, are too few or too many")
    bound = 0.0
    for level in levels:
        events = parts * len(level.counts)
        terms = [
            kl_bound(
                risk_bound(level.bins, counts, level.values, delta_draws / events),
                level.kl + level.nats,
                level.n,
                delta_bound / events,
            )
            for counts in level.counts
        ]
        if len(terms) == 1:
            bound = terms[0]
        else:
            excess = sum(w * x for w, x in zip(WEIGHTS, terms, strict=True)) - GAMMA
            bound = min(1.0, max(0.0, GAMMA * bound + excess + SLACK))
    return bound
