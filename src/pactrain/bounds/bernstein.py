"""The unexpected Bernstein bound for a loss X in [0, b], at η = u/b with u in (0, 1) fixed in advance:

    E_Q L ≤ E_Q mean(X + κ X²) + (KL + ln(1/δ)) / (η n),      κ = (−ln(1 − u) − u) / (u b)

Where the loss is mostly small, so is its square, and the bound is far below that for the whole range.  Why it holds: with
y = ηX ≤ u and f(y) = (−ln(1 − y) − y)/y², which grows with y, −ln(1 − y) − y ≤ f(u) y²; hence exp(−y − f(u) y²) ≤ 1 − y, so that
E exp(E y − y − f(u) y²) ≤ exp(E y) (1 − E y) ≤ 1.  The rest is the change of measure that all PAC-Bayes bounds share.
"""

import math


def bernstein_square(u: float) -> float:
    """c in X + κ X² = b (x + c x²), where x = X/b; its largest value is b (1 + c)."""
    return (-math.log1p(-u) - u) / u


def bernstein_bound(mean: float, kl: float, n: int, delta: float, *, limit: float, u: float) -> float:
    """The bound for a loss in [0, limit]; `mean` is E_Q mean(X + κ X²) as a part of its largest value.  Never rounded down.

    >>> round(bernstein_bound(0.02, 20.0, 1000, 0.05, limit=5.0, u=0.5), 3)
    0.369
    """
    if not 0 <= mean <= 1 or not 0 < u < 1:
        raise ValueError(f"the unexpected Bernstein bound needs a mean in [0, 1] and u in (0, 1), not {mean} and {u}")
    exact = limit * ((1 + bernstein_square(u)) * mean + (kl - math.log(delta)) / (u * n))
    return exact * (1 + 1e-14)
