"""Training block by block: what is judged when, and how a run goes on after a crash."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import pactrain
from pactrain import PactrainError
from pactrain.rules.presets import AUTO
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Event
from pactrain.sklearn import PACBayesClassifier
from tests.interruptions import Crash, interrupt_at
from tests.zoo import build, rows

RUN: dict[str, Any] = {"certificate": "progressive", "budget": "6 epochs"}

LOOSE = AUTO.replace(held="gamma_max")
"""Rules by which a network learns random labels."""


def test_every_row_is_judged_once_and_then_trained_on() -> None:
    events: list[Event] = []
    result = pactrain.fit(build("mlp"), rows(200), callbacks=[events.append], **RUN)
    met = [event for event in events if event.phase == "block"]
    assert [event.values["examples"] for event in met] == [20] + 10 * [10]
    assert (met[-1].done, met[-1].total) == (11, 11)
    assert result.metrics["train"]["n"] == 200
    assert [s.bound for s in result.certificate.statements] == ["progressive"]
    (s,) = result.certificate.statements
    assert result.certificate.n == s.inputs["n"] == 100
    assert result.certificate.budget == {"progressive": s.inputs["delta_bound"]} == {"progressive": 0.05}
    assert s.inputs["blocks"] == " ".join(f"{e.values['examples']}:{e.values['errors']}" for e in met)
    assert result.certificate.recheck()
    assert s.label == "certified"
    assert "a network picked at random from those on the way to this one is right" in str(result.certificate)
    assert "the delivered network is the next one" in str(result.certificate)


def test_random_labels_prove_nothing() -> None:
    """The network knows many rows by heart in the end; the blocks were judged before."""
    x, y = rows(200)
    labels = torch.randint(int(y.max()) + 1, y.shape, generator=torch.Generator().manual_seed(3))
    result = pactrain.fit(build("mlp"), (x, labels), certificate="progressive", budget="150 epochs", preset=LOOSE)
    assert result.metrics["train"]["accuracy"] > 0.5
    assert "Nothing is claimed" in str(result.certificate)


@pytest.mark.parametrize("name", ["mlp", "batchnorm"])
def test_resumed_run_is_bitwise_the_uninterrupted_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    whole = pactrain.fit(build(name), rows(120), out=tmp_path / "whole", **RUN)
    for epoch, resume in ((3, False), (6, True), (7, True), (len(whole.history), True)):
        options: dict[str, Any] = RUN | {"resume": resume, "callbacks": [interrupt_at(epoch, Crash)]}
        with pytest.raises(Crash):
            pactrain.fit(build(name), rows(120), out=tmp_path / "cut", **options)
    again = pactrain.fit(build(name), rows(120), out=tmp_path / "cut", resume=True, **RUN)
    for file in ("model.safetensors", "posterior.safetensors", "certificate.json", "moment.json"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    kept = [[{k: v for k, v in r.items() if k != "seconds"} for r in h] for h in (whole.history, again.history)]
    assert json.dumps(kept[0]) == json.dumps(kept[1])


def test_an_interrupted_run_states_what_was_met() -> None:
    stop = interrupt_at(8, KeyboardInterrupt)
    result = pactrain.fit(build("mlp"), rows(200), callbacks=[stop], **RUN)
    assert result.interrupted
    met = result.metrics["certificate"]["blocks"]
    assert 1 < len(met) < 11
    assert result.certificate.n == 10 * (len(met) - 1)
    assert result.metrics["train"]["n"] == 80 + 20 + 10 * (len(met) - 1)


def regression() -> tuple[Tensor, Tensor]:
    x, _ = rows(60)
    return x, x[:, 0]


def test_what_cannot_be_met_block_by_block() -> None:
    x, y = rows(60)
    with pytest.raises(PactrainError, match="certificate='none' is not known"):
        pactrain.fit(build("mlp"), (x, y), certificate="none")
    with pytest.raises(PactrainError, match="prior_data goes with the standard certificate"):
        pactrain.fit(build("mlp"), (x, y), certificate="progressive", prior_data=0.5)
    with pytest.raises(DataError, match="this is no classification"):
        pactrain.fit(build("mlp"), regression(), certificate="progressive", loss="mse")
    with pytest.raises(DataError, match="whose rows can be told apart"):
        pactrain.fit(build("mlp"), [(x, y)], certificate="progressive")
    with pytest.raises(DataError, match="at least 5 rows, and there are 4"):
        pactrain.fit(build("mlp"), (x[:4], y[:4]), certificate="progressive")


def test_a_scaler_fitted_on_the_first_half_leaves_the_label() -> None:
    x, y = rows(300)
    estimator = PACBayesClassifier(certificate="progressive", budget="30 epochs")
    estimator.fit(50 + 20 * x.numpy(), y.numpy())
    (s,) = estimator.certificate_.statements
    assert (s.bound, s.label, estimator.certificate_.caveats) == ("progressive", "certified", ())
