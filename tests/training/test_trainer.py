"""The second stage of training: what it keeps, how it is judged, what is certified."""

import pytest

import pactrain
from pactrain.rules.presets import AUTO, PAPER
from tests.zoo import build, rows


def test_stage_2_keeps_the_noise_and_the_prior() -> None:
    rules = PAPER.replace(fixed_epochs=4)
    result = pactrain.fit(build("mlp"), rows(), preset=rules, budget="6 epochs")
    one, two = ([r for r in result.history if r["stage"] == s] for s in (1, 2))
    assert (len(one), len(two)) == (4, 2)
    assert all(r["posterior_std"] == one[-1]["posterior_std"] for r in two)
    assert all(r["prior_std"] == one[-1]["prior_std"] for r in two)
    assert result.metrics["stage1"]["bound"] == one[-1]["bound"]


def test_stage_2_is_judged_in_the_units_of_the_loss_that_is_trained_on() -> None:
    """At a standstill the clipped risk stays near its start, so stage 2 must follow although the number itself is small."""
    still = AUTO.replace(name="still", lr=1e-9, stage2_share=0.5, enter_stage2=0.5)
    result = pactrain.fit(build("mlp"), rows(), bound="kl", preset=still, budget="6 epochs")
    assert result.history[0]["risk"] < 0.5 * 1.1  # far below half the cross-entropy of three classes
    assert result.metrics["stage2_epochs"] > 0


def test_both_ends_of_training_are_certified_and_the_objective_is_a_heuristic() -> None:
    result = pactrain.fit(build("mlp"), rows(), preset=PAPER.replace(fixed_epochs=4), budget="6 epochs")
    statements = result.certificate.statements
    assert {s.when for s in statements if s.bound == "kl"} == {"end of training", "end of stage 1"}
    heuristic = {s.bound: s for s in statements if s.label == "heuristic"}
    objective = heuristic["training objective"]
    assert objective.value == pytest.approx(result.metrics["stage1"]["bound"])
    assert heuristic["training objective + η"].value > objective.value
