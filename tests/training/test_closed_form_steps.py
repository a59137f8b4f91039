"""Warm-up, and the weight of the divergence during training."""

from typing import Any

import pytest

import pactrain
from pactrain.bounds import KL
from pactrain.rules.presets import AUTHORS
from pactrain.training import closed_form_steps
from pactrain.training.closed_form_steps import SURROGATE, followed_weight
from tests.zoo import build, rows


def test_warm_up_moves_the_stds_of_a_group_together() -> None:
    for epochs, smallest, together in ((4, 1, True), (0, 1, False), (4, 1_000_000, False)):
        rules = AUTHORS.replace(fixed_epochs=4, stage2_share=0.0, warmup_epochs=epochs, warmup_weights=smallest)
        posterior = pactrain.fit(build("mlp"), rows(), preset=rules, budget="4 epochs").posterior
        spans = [float(posterior.log_std.detach()[at].std()) for at in posterior.group_slices]
        assert (max(spans) < 1e-5) is together


def test_the_weight_of_the_divergence_follows_the_divergence_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def watched(bound: Any, held_gamma: float, risk: float, kl: float, errors: float | None) -> float:
        seen.append(kl)
        return followed_weight(bound, held_gamma, risk, kl, errors)

    monkeypatch.setattr(closed_form_steps, "followed_weight", watched)
    result = pactrain.fit(build("mlp"), rows(300), bound="kl", budget="5 epochs")
    assert seen == pytest.approx([r["kl"] for r in result.history], rel=0.02)


def test_the_weight_is_that_of_the_errors_in_units_of_the_loss() -> None:
    """It is the ratio of the two slopes of kl⁻¹(x, (KL + …)/n) at the share x of errors, the loss counting x/r times."""
    bound, step = KL(10_000, 0.05), 1e-6
    in_errors = (bound.value(0.12 + step, 900.0) - bound.value(0.12 - step, 900.0)) / (2 * step)
    in_nats = (bound.value(0.12, 900.0 + 1e-3) - bound.value(0.12, 900.0 - 1e-3)) / 2e-3
    expected = in_nats / (in_errors * 0.12 / 0.03)
    assert followed_weight(bound, 1.0, 0.03, 900.0, 0.12) == pytest.approx(expected, rel=1e-4)
    without_classes = followed_weight(bound, 1.0, 0.03, 900.0, None)
    assert without_classes == pytest.approx(SURROGATE * bound.kl_weight(0.03, 900.0, 1.0))
    assert followed_weight(bound, 1.0, 0.03, 900.0, 0.0) == without_classes
