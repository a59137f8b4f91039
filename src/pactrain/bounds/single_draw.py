"""The disintegrated bound for one network h drawn from the posterior:

    kl⁻¹( risk(h), (ln dQ/dP(h) + ln(2√n/δ)) / n )

It holds with probability 1 − δ over the data and the draw of h together.  A negative exponent proves no less than none.
"""

import math

from pactrain.bounds.kl import kl_inverse


def disintegrated(risk: float, log_ratio: float, n: int, delta: float) -> float:
    """Upper bound of the risk of the one network drawn; `log_ratio` is ln dQ/dP at it."""
    return kl_inverse(risk, max(0.0, log_ratio + math.log(2 * math.sqrt(n) / delta)) / n)
