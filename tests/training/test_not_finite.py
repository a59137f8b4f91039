"""A loss that is not finite says where it was met."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.rules.presets import AUTO
from pactrain.runtime.errors import TrainingError
from tests.zoo import build, rows


def test_a_loss_that_is_not_finite_says_where_and_keeps_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    calls = 0

    def loss(predict: Any, batch: Any) -> Tensor:
        nonlocal calls
        x, y = batch
        losses = nn.functional.cross_entropy(predict(x), y, reduction="none")
        if torch.is_grad_enabled():
            calls += 1
        return losses * (float("nan") if calls > 3 else 1.0) if torch.is_grad_enabled() else losses

    with pytest.raises(TrainingError, match=r"nan at step 4 \(epoch 4, stage 1\).*group of weights '[02]'"):
        pactrain.fit(build("mlp"), rows(), loss=loss, preset=AUTO.replace(held="gamma_max"), out=tmp_path / "run")
    assert (tmp_path / "run" / "checkpoint" / "state.safetensors").exists()
    assert len((tmp_path / "run" / "history.jsonl").read_text().splitlines()) == 3
