"""Inputs of statements as certificates record them."""

from typing import Any

MEASURED: dict[str, Any] = {
    "bins": 1, "counts": "0:630 1:70", "values": 700, "delta_draws": 0.001, "choices": 1, "kl": 20.0, "prior_nats": 7.0,
    "n": 900, "delta_bound": 0.004,
}  # fmt: skip

KL = MEASURED | {"scale": 1.0}

UNBOUNDED = {
    "risk": 0.7, "kl": 2.0, "prior_nats": 7.0, "confidence_nats": 5.0, "n": 900, "gamma": 2.5, "complexity": 0.31,
}  # fmt: skip

ETA = {
    "objective": 0.9, "weights": 50, "mean_size": 1.3, "mean_variance": 0.2, "gamma_min": 0.5, "gamma_max": 20.0, "n": 90,
    "largest_kl": 400.0, "largest_k": 2.0, "delta": 0.05, "groups": 3,
}  # fmt: skip
