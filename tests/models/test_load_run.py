"""A run read again predicts as it did, and nothing in its folder is executed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import pactrain
from pactrain.cli.train import Train
from pactrain.runtime.errors import RunError

G = torch.Generator().manual_seed(0)
X = torch.randn(80, 3, generator=G)
Y = (X[:, 0] > 0).long()


@pytest.mark.parametrize("per", ["layer", "tensor", "model"])
def test_a_result_of_an_own_network(tmp_path: Path, per: str) -> None:
    first = pactrain.fit(
        nn.Linear(3, 2), (X[:50], Y[:50]), test=(X[50:], Y[50:]), prior=per, budget="3 epochs", out=tmp_path / "run"
    )
    again = pactrain.load(tmp_path / "run", nn.Linear(3, 2))
    before, after = first.predict(X, coverage=0.8), again.predict(X, coverage=0.8)
    for name in ("values", "probabilities", "spread", "sets", "guarantee"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    np.testing.assert_array_equal(first.posterior.predict(X).mean, again.posterior.predict(X).mean)  # probabilities
    assert again.certificate == first.certificate
    assert again.moment.to_dict() == first.moment.to_dict()
    assert [len(again.history), again.notes, again.interrupted] == [len(first.history), first.notes, False]
    assert again.metrics["train"] == first.metrics["train"]
    torch.testing.assert_close(again.drawn()(X), first.drawn()(X), rtol=0, atol=0)


def test_a_compiled_network_takes_the_weights_of_a_run(tmp_path: Path) -> None:
    plain = nn.Linear(3, 2)
    first = pactrain.fit(torch.compile(plain, backend="aot_eager"), (X, Y), budget="3 epochs", out=tmp_path / "run")  # type: ignore[arg-type]
    for fresh in (nn.Linear(3, 2), torch.compile(nn.Linear(3, 2), backend="aot_eager")):
        again = pactrain.load(tmp_path / "run", fresh)  # type: ignore[arg-type]
        assert again.model is fresh
        np.testing.assert_array_equal(again.predict(X).probabilities, first.predict(X).probabilities)
        with torch.no_grad():
            torch.testing.assert_close(again.model(X), plain(X), rtol=0, atol=0)


def table(path: Path) -> pd.DataFrame:
    """Raw rows of mess."""
    frame = pd.DataFrame(
        {
            "when": [f"{1 + i % 28}.{1 + i % 12}.2023" for i in range(80)],
            "price": [f"{abs(float(v)):.2f}".replace(".", ",") for v in X[:, 1]],
            "size": X[:, 0].numpy(),
            "y": np.where(Y == 1, "big", "small"),
        }
    )
    frame.to_csv(path, index=False)
    return frame


def test_a_run_of_the_shell_is_built_and_takes_raw_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table(tmp_path / "t.csv")
    assert Train(data="t.csv", target="y", budget="3 epochs", model="mlp:8", out=tmp_path / "run").run() == 0
    result = pactrain.load("run")
    found = result.predict(frame, coverage=0.9)
    assert set(found.values) <= {"big", "small"}
    assert found.classes == ("big", "small")
    assert found.sets is not None
    with pytest.raises(pactrain.PactrainError, match=r"columns 'when', 'price', 'size': pass a DataFrame"):
        result.predict(X.numpy())


def test_a_folder_that_names_code_does_not_run_it(tmp_path: Path) -> None:
    pactrain.fit(nn.Linear(3, 2), (X, Y), budget="1 epoch", out=tmp_path / "run")
    with pytest.raises(RunError, match=r"does not say how its network is made: pass load\(run, model="):
        pactrain.load(tmp_path / "run")
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef make(i, o): ...\n")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config |= {"model": f"{evil}:make", "preprocess": {"kind": "classification"}}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match="is not as pactrain writes it"):
        pactrain.load(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text(json.dumps(config | {"preprocess": None}))
    with pytest.raises(RunError, match="which is not run"):
        pactrain.load(tmp_path / "run")
    assert not (tmp_path / "ran").exists()
    (tmp_path / "run" / "metrics.json").unlink()
    with pytest.raises(RunError, match="no completed run"):
        pactrain.load(tmp_path / "run", nn.Linear(3, 2))
    with pytest.raises(RunError, match="is not a run folder"):
        pactrain.load(tmp_path / "nothing")


def test_another_network_is_refused(tmp_path: Path) -> None:
    pactrain.fit(nn.Linear(3, 2), (X, Y), budget="1 epoch", out=tmp_path / "run")
    with pytest.raises(pactrain.PactrainError):
        pactrain.load(tmp_path / "run", nn.Linear(4, 2))
    with pytest.raises(pactrain.PactrainError):
        pactrain.load(tmp_path / "run", nn.Sequential(nn.Linear(3, 2)))
