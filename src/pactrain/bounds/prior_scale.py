"""Paying for a prior scale learned from the data.

The prior grid: each group's log-std is rounded to one of N points fixed in advance; k ln N nats.
Dziugaite and Roy: prior variances c·e^{−j/b}, j = 1, 2, …, b = 100, c = 0.1; choosing j costs 2 ln(b ln(c/variance)) + ln(π²/6)
nats, for each group whose scale is chosen by itself.
"""

import math

B = 100.0
C = 0.1


def dziugaite_roy(log_std: float) -> list[tuple[float, float]]:
    """The two neighbours (rounded log-std, its price in nats) of a learned log-std; the caller keeps the better.

    A scale above √c has no neighbour above; the largest one is offered.
    """
    j = B * (math.log(C) - 2 * log_std)
    choices = {max(1, math.floor(j)), max(1, math.ceil(j))}
    return [(0.5 * (math.log(C) - i / B), 2 * math.log(i) + math.log(math.pi**2 / 6)) for i in sorted(choices)]
