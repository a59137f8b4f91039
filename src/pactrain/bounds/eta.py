"""The paper's correction η for a trainable Gaussian prior, exactly as printed in its main text.  A heuristic.

    η = k/(γ1 n) · (1 + ln( 2 (C L + B) Δ γ1 n / k )),   L = L1 + L2,   C = 1/(γ1 n) + γ2,   Δ = max{b + a, 2(γ2 − γ1)}
    L1 = ½ max{ d, e^a (2√d M + d T) },    L2 = (2 d M² e^{2a} + d (a + b)/2) / γ1²
    B  = sup over prior variances of (KL + ln 1/δ)/(n γ1²) + K

It is not a proved bound: the norm in L1 should be squared, and L2 takes a supremum over bounded weights although they are
Gaussian.  Rounding the prior (`prior_price.py`) replaces it in everything that is called certified.
"""

import math

LOG_VARIANCE_RANGE = (-12.0, 2.0)
"""−a and b: the log-variances between which the paper keeps its prior."""


def eta_paper(
    *,
    groups: int,
    weights: int,
    n: int,
    mean_size: float,
    mean_variance: float,
    largest_kl: float,
    largest_k: float,
    delta: float,
    gamma_min: float,
    gamma_max: float,
) -> float:
    """η as printed.

    mean_size is M = ‖mean‖₂/√d, mean_variance is T = ‖variances‖₁/d; largest_kl and largest_k are the suprema over the
    range of the prior that enter B.
    """
    a, b = -LOG_VARIANCE_RANGE[0], LOG_VARIANCE_RANGE[1]
    d, root = float(weights), math.sqrt(weights)
    l1 = 0.5 * max(d, math.exp(a) * (2 * root * mean_size + d * mean_variance))
    l2 = (2 * d * mean_size**2 * math.exp(2 * a) + d * (a + b) / 2) / gamma_min**2
    c = 1 / (gamma_min * n) + gamma_max
    big_b = (largest_kl + math.log(1 / delta)) / (n * gamma_min**2) + largest_k
    spread = max(b + a, 2 * (gamma_max - gamma_min))
    return groups / (gamma_min * n) * (1 + math.log(2 * (c * (l1 + l2) + big_b) * spread * gamma_min * n / groups))
