"""Warm-up, and the weight of the divergence during training."""

from typing import Any

import pytest

import pactrain
from pactrain.rules.presets import AUTHORS
from pactrain.training import closed_form_steps
from pactrain.training.closed_form_steps import followed_weight
from tests.zoo import build, rows


def test_warm_up_moves_the_stds_of_a_group_together() -> None:
    for epochs, smallest, together in ((4, 1, True), (0, 1, False), (4, 1_000_000, False)):
        rules = AUTHORS.replace(fixed_epochs=4, stage2_share=0.0, warmup_epochs=epochs, warmup_weights=smallest)
        posterior = pactrain.fit(build("mlp"), rows(), preset=rules, budget="4 epochs").posterior
        spans = [float(posterior.log_std.detach()[at].std()) for at in posterior.group_slices]
        assert (max(spans) < 1e-5) is together


def test_the_weight_of_the_divergence_follows_the_divergence_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def watched(bound: Any, held_gamma: float, risk: float, kl: float) -> float:
        seen.append(kl)
        return followed_weight(bound, held_gamma, risk, kl)

    monkeypatch.setattr(closed_form_steps, "followed_weight", watched)
    result = pactrain.fit(build("mlp"), rows(300), bound="kl", budget="5 epochs")
    assert seen == pytest.approx([r["kl"] for r in result.history], rel=0.02)
