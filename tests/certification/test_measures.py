"""What is measured for which loss."""

import math

import pytest
import torch

from pactrain.certification.measures import (
    CLIPPED,
    CROSS_ENTROPY,
    ERROR,
    LARGE,
    SMOOTHING,
    STAKES,
    THRESHOLDS,
    TRUNCATED,
    Measure,
    keys_of,
    measures_for,
    smoothed,
)
from pactrain.problem.losses import CallableLoss, Loss
from pactrain.problem.named_losses import LOSSES

CE = LOSSES["cross_entropy"]


def test_which_measures_a_loss_has() -> None:
    error, entropy = (ERROR, 0.0, 0.0), [(CROSS_ENTROPY, e, u) for e in SMOOTHING for u in STAKES]
    assert keys_of(measures_for(CE, 2)) == [error, *entropy]
    assert keys_of(measures_for(CE, 0)) == [error, (CLIPPED, 0.0, 0.0)]  # several classes per row
    assert keys_of(measures_for(LOSSES["hinge"], 2)) == [error]
    assert [measures_for(CE, classes)[0].whole for classes in (0, 2)] == [False, True]
    sizes = [(event, t, 0.0) for event in (LARGE, TRUNCATED) for t in THRESHOLDS]
    assert keys_of(measures_for(LOSSES["mse"], 0)) == sizes
    squashed = measures_for(Loss("own", lambda o, t: o - t, "regression", high=4.0), 0)
    assert keys_of(squashed) == [*sizes, (CLIPPED, 0.0, 0.0)]
    assert squashed[-1](torch.tensor([1.0, 9.0]), None).tolist() == [[0.25], [1.0]]
    assert (SMOOTHING, STAKES) == ((0.01, 0.05, 0.1, 0.2), (0.03, 0.06, 0.12, 0.25, 0.35, 0.5, 0.7, 0.9))
    assert pytest.approx([4.0**i for i in range(-9, 10)]) == THRESHOLDS


def test_measures_of_regression() -> None:
    large, truncated = measures_for(LOSSES["l1"], 0)
    nothing, squares = torch.zeros(5), torch.tensor([0.0, 0.05, 0.0626, 16.0, 20.0])
    quarter, four = THRESHOLDS.index(0.25), THRESHOLDS.index(4.0)
    assert large(nothing, squares)[:, quarter].tolist() == [0, 0, 1, 1, 1]
    assert large(nothing, squares)[:, four].tolist() == [0, 0, 0, 0, 1]
    assert truncated(nothing, squares)[:, four].tolist() == pytest.approx([0, 0.05 / 16, 0.0626 / 16, 1, 1])
    assert (large.whole, truncated.whole) == (True, False)


def test_smoothing_and_what_is_not_finite() -> None:
    losses = torch.tensor([0.0, 1.0, math.inf]).double()
    wanted = [-math.log(0.9 + 0.025), -math.log(0.9 * math.exp(-1) + 0.025), math.log(40)]
    assert smoothed(losses, 0.1, 4).tolist() == pytest.approx(wanted)
    odd = Measure("odd", lambda losses, _: losses)(torch.tensor([math.nan, math.inf, -1.0, 0.5]), None)
    assert odd.flatten().tolist() == [1, 1, 0, 0.5]


def test_ranges_of_losses() -> None:
    def of(low: float, high: float) -> float | None:
        return Loss("own", lambda o, t: o - t, "regression", low=low, high=high).clip

    assert CE.clip == pytest.approx(math.log(1e4), rel=1e-15)
    assert CallableLoss.of(lambda predict, batch: batch).clip is None
    assert [of(0, 3.0), of(0, math.inf), of(-1, 3.0), of(1, 3.0), of(-1, math.inf)] == [3.0, None, None, None, None]
