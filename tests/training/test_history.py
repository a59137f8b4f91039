"""How often a long run is looked at."""

import itertools

import pytest

import pactrain
from pactrain.rules.presets import PRESETS
from pactrain.training import history
from tests.zoo import build, rows


@pytest.mark.parametrize("preset", ["auto", "authors"])
def test_a_long_run_is_looked_at_now_and_then_and_at_its_ends(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MEASUREMENTS", 5)
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
