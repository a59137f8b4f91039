"""The weight of the KL against the risk while stds have closed forms."""

from pactrain.bounds.base import Bound
from pactrain.bounds.unbounded import Unbounded

GUESS_RISK, GUESS_KL = 0.05, 0.1
"""Where a bound for losses in [0, 1] is expected to end (risk, and nats an example), for the first weight of the KL: at
the start the KL is nearly zero, and the slopes there would tie the posterior to the prior for good."""

FOLLOW = 4.0
"""How far from that first weight the bound's own slopes may lead."""

SURROGATE = 0.5
"""Weight of the KL relative to the slopes at the clipped loss: the error, which is what people want bounded, is about three
times the clipped cross-entropy where training ends and pays for more nats than it.  Picked on MNIST."""


def first_weight(bound: Unbounded | Bound, held_gamma: float) -> float:
    """1/(γ n) with γ held for unbounded losses; for losses in [0, 1] the bound's slopes where it may end."""
    if isinstance(bound, Unbounded):
        return 1 / (held_gamma * bound.n)
    slope_risk, slope_kl = bound.slopes(GUESS_RISK, GUESS_KL * bound.n)
    return SURROGATE * slope_kl / slope_risk


def followed_weight(bound: Unbounded | Bound, held_gamma: float, risk: float, kl: float) -> float:
    """The weight at the present point: the bound's slopes there, within a factor of the first weight."""
    first = first_weight(bound, held_gamma)
    if isinstance(bound, Unbounded):
        return first
    slope_risk, slope_kl = bound.slopes(min(max(risk, 1e-6), 1 - 1e-6), kl)
    return min(max(SURROGATE * slope_kl / slope_risk, first / FOLLOW), first * FOLLOW)
