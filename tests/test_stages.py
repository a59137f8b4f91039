"""The two stages of training: where they start, what they keep, what ends them, what is said of them."""

import itertools
from typing import Any

import numpy as np
import pytest

import pactrain
from pactrain import PactrainError, Posterior
from pactrain.rules.presets import AUTHORS, AUTO, FEWEST_SCANNED, PAPER, PRESETS, Rules
from pactrain.runtime.events import Event
from pactrain.training import closed_form_steps as curvature_steps
from pactrain.training import history
from pactrain.training.closed_form_steps import followed_weight
from pactrain.training.schedule import Budget
from tests.test_fit import weights
from tests.zoo import build, rows


def test_budgets_are_honoured() -> None:
    import time

    events: list[Event] = []
    started = time.monotonic()
    result = pactrain.fit(build("mlp"), rows(2000), budget=0.5, callbacks=[events.append])
    assert result.metrics["steps"] > 5
    assert result.history[-1]["scores_epoch"] == len(result.history)  # however it ends, the end is looked at
    assert time.monotonic() - started < 10
    assert sum(r["stage"] == 1 for r in result.history) < AUTO.stage1_epochs(31)
    assert {e.phase for e in events} == {"scan", "train", "certify"}
    assert len(pactrain.fit(build("mlp"), rows(), budget="3 epochs").history) <= 3
    for bad in ("soon", "-3s", "3 weeks", "1.5 epochs", "..s"):
        with pytest.raises(PactrainError, match="not understood"):
            pactrain.fit(build("mlp"), rows(), budget=bad)


def test_budget_is_shared_between_the_stages() -> None:
    rules = Rules(name="r", start="knee", stage2_share=0.5)
    assert Budget(epochs=30).epochs_of_stages(1000, rules) == (20, 10)
    assert Budget(epochs=30).epochs_of_stages(10, rules) == (10, 5)
    assert Budget().epochs_of_stages(100, rules) == (100, 50)


@pytest.mark.parametrize("preset", ["auto", "authors"])
def test_a_long_run_is_looked_at_now_and_then_and_at_its_ends(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LOOKS", 5)
    rules = PRESETS[preset].replace(fixed_epochs=40, enter_stage2=0.0, stage2_share=0.5, stage2_patience=7)
    data = rows(60)
    result = pactrain.fit(build("mlp"), data, preset=rules)
    looks = [r["scores_epoch"] for r in result.history]
    assert 5 <= len(set(looks)) <= 30 < len(looks)
    ends = [a["epoch"] for a, b in itertools.pairwise(result.history) if a["stage"] != b["stage"]]
    assert ends
    for epoch in (1, *ends, len(looks)):
        assert looks[epoch - 1] == epoch
    for record in result.history:  # between looks, those of the last
        last = result.history[record["scores_epoch"] - 1]
        assert all(record[key] == last[key] for key in ("train", "kl", "prior_std", "posterior_std"))
        assert record["bound"] == pytest.approx(record["risk"] + record["kl_term"] + record["complexity"])
    assert result.history[-1]["train"]["loss"] == pytest.approx(result.metrics["train"]["loss"], rel=1e-5)


def test_ctrl_c_stops_between_steps_and_a_second_fit_is_told_of_the_first() -> None:
    import signal

    def press(event: Event) -> None:
        if event.phase == "train" and event.done == 2:
            signal.raise_signal(signal.SIGINT)

    model = build("mlp")
    handler = signal.getsignal(signal.SIGINT)
    first = pactrain.fit(model, rows(), callbacks=[press])
    assert first.interrupted
    assert len(first.history) == 2
    assert signal.getsignal(signal.SIGINT) is handler
    second = pactrain.fit(model, rows(), budget="1 epoch")
    assert any("trained the network before" in c.reason for c in second.certificate.caveats)
    assert "certified" not in {s.label for s in second.certificate.statements}


def test_ctrl_c_ends_the_scan_at_once() -> None:
    import signal

    seen = []

    def press(event: Event) -> None:
        seen.append(event.phase)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pactrain.fit(build("mlp"), rows(), callbacks=[press])
    assert seen == ["scan"] * 3
    assert signal.getsignal(signal.SIGINT) is handler


def test_little_time_leaves_less_to_the_scan() -> None:
    def scanned(**limits: Any) -> int:
        return pactrain.fit(build("mlp"), rows(600), preset=AUTO.replace(fixed_epochs=60), **limits).moment.n_used

    assert scanned(budget=1e-6) == FEWEST_SCANNED < scanned(budget="1 epoch")


def test_presets_start_where_they_say() -> None:
    model = build("mlp")
    scale = float(weights(model).abs().mean())
    starts = {}
    for name, rules in PRESETS.items():
        posterior = Posterior(build("mlp"))
        moment = pactrain.estimate_moment(posterior, rows(), draws=3)
        starts[name] = rules.start_std(posterior, rules.bound(48, 0.05, moment, 2))
        if name == "auto":
            at_start = rules.bound(48, 0.05, moment, 2).at_start()
            chosen = int(np.argmin(np.abs(np.exp(moment.log_stds) - starts[name])))
            assert at_start[chosen] <= 1.02 * at_start.min()
            assert (at_start[chosen + 1 :] > 1.02 * at_start.min()).all()
    assert starts["authors"] == pytest.approx(scale)
    assert starts["paper"] == pytest.approx(scale**0.5)
    assert AUTHORS.confidence_nats(0.05, 4) == 22.0
    assert PAPER.confidence_nats(0.05, 4) == pytest.approx(np.log(20))
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), preset="best")
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), bound="best")


def test_warm_up_moves_the_stds_of_a_group_together() -> None:
    for epochs, smallest, together in ((4, 1, True), (0, 1, False), (4, 1_000_000, False)):
        rules = AUTHORS.replace(fixed_epochs=4, stage2_share=0.0, warmup_epochs=epochs, warmup_weights=smallest)
        posterior = pactrain.fit(build("mlp"), rows(), preset=rules, budget="4 epochs").posterior
        spans = [float(posterior.log_std.detach()[at].std()) for at in posterior.group_slices]
        assert (max(spans) < 1e-5) is together


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


def test_the_weight_of_the_divergence_follows_the_divergence_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def watched(bound: Any, held_gamma: float, risk: float, kl: float) -> float:
        seen.append(kl)
        return followed_weight(bound, held_gamma, risk, kl)

    monkeypatch.setattr(curvature_steps, "followed_weight", watched)
    result = pactrain.fit(build("mlp"), rows(300), bound="kl", budget="5 epochs")
    assert seen == pytest.approx([r["kl"] for r in result.history], rel=0.02)
