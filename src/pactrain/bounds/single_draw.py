"""The disintegrated bound for one network h drawn from the posterior:

    kl⁻¹( risk(h), (ln dQ/dP(h) + ln(ξ(n)/δ)) / n )

It holds with probability 1 − δ over the data and the draw of h together.  A negative exponent proves no less than none.
"""

import math

from pactrain.bounds.kl import kl_inverse, log_xi


def disintegrated(risk: float, log_ratio: float, n: int, delta: float) -> float:
    """Bound the risk of one network that was drawn from the posterior.

    Args:
        risk: Its error on the `n` examples, in [0, 1].
        log_ratio: ln dQ/dP at the drawn weights, in nats.
        n: Number of examples.
        delta: Probability, over data and draw together, with which the bound may fail.

    Returns:
        An upper bound of its error on new data.

    Example:
        >>> round(disintegrated(0.02, 30.0, 1000, 0.05), 4)
        0.083
    """
    return kl_inverse(risk, max(0.0, log_ratio + log_xi(n) - math.log(delta)) / n)
