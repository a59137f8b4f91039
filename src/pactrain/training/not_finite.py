"""The error for a loss or weight that has become NaN or infinite."""

import math

import torch

from pactrain.distributions.posterior import Posterior
from pactrain.runtime.errors import TrainingError
from pactrain.training.state import Progress


def not_finite(posterior: Posterior, p: Progress, value: float) -> TrainingError:
    """Where it happened, which weights it came from as far as can be seen, and what helps."""
    with torch.no_grad():
        moved = posterior.mean_shift().abs() / posterior.log_std.exp()
        peaks = [float(moved[at].max()) for at in posterior.group_slices]
    bad = [g for g, peak in zip(posterior.groups, peaks, strict=True) if not math.isfinite(peak)]
    group = bad[0] if bad else posterior.groups[max(range(len(peaks)), key=peaks.__getitem__)]
    why = "holds weights that are not finite" if bad else "has moved furthest from its start"
    return TrainingError(
        f"the loss became {value} at step {p.step + 1} (epoch {p.epoch + 1}, stage {p.stage}); "
        f"the group of weights {group!r} {why}. "
        "Scale the inputs to about unit size, look for a logarithm or a division by zero in the loss, "
        "or pass an optimiser with a smaller rate"
    )
