"""Going on with a run: with the same data, network and checkpoint, or not at all."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.runs import folder as runs
from pactrain.runtime.errors import RunError
from pactrain.runtime.events import Event
from tests.zoo import rows


class Small(nn.Module):
    """A network of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out


class Crash(Exception):
    """Stands for the power going off."""


def at(epoch: int, action: Callable[[], Any]) -> Callable[[Event], None]:
    """A callback that does something at the end of an epoch."""

    def callback(event: Event) -> None:
        if event.phase == "train" and event.done == epoch:
            action()

    return callback


def crash() -> None:
    raise Crash


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that crashed after two epochs of four."""
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(Crash):
        fit(tmp_path / "run", callbacks=[at(2, crash)])
    return tmp_path / "run"


def fit(out: Path, data: Any = None, model: nn.Module | None = None, **options: Any) -> pactrain.Result:
    """A run of four epochs."""
    return pactrain.fit(model or Small(), data or rows(), budget="4 epochs", out=out, **options)


def test_data_that_has_changed(cut: Path) -> None:
    x, y = rows()
    x[3, 2] += 1e-6
    with pytest.raises(RunError, match="the data has changed since"):
        fit(cut, (x, y), resume=True)
    assert fit(cut, resume=True).metrics["stage1_epochs"] == 4


def test_a_network_whose_source_has_changed(cut: Path) -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = 2 * self.layer(x)
            return out

    with pytest.raises(RunError, match="the source of the network has changed"):
        fit(cut, model=Small(), resume=True)
    with pytest.raises(RunError, match="the source of the network has changed"):
        fit(cut, model=nn.Sequential(Small()), resume=True)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_one_bit_of_the_checkpoint(cut: Path, share: float) -> None:
    file = cut / "checkpoint" / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[int(share * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(RunError, match=r"state\.safetensors"):
        fit(cut, resume=True)


def test_a_checkpoint_of_another_run(cut: Path, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        pactrain.fit(
            nn.Linear(6, 3, bias=False), rows(), out=tmp_path / "b", callbacks=[at(2, crash)], budget="4 epochs"
        )
    shutil.copy(tmp_path / "b" / "checkpoint" / "state.safetensors", cut / "checkpoint" / "state.safetensors")
    with pytest.raises(RunError, match=r"state\.safetensors"):
        fit(cut, resume=True)


def test_other_versions_are_noted(cut: Path) -> None:
    config = json.loads((cut / "config.json").read_text())
    config["versions"] |= {"torch": "1.0", "pactrain": "0.0.1"}
    (cut / "config.json").write_text(json.dumps(config))
    notes = fit(cut, resume=True).notes
    assert [name for name in ("torch", "pactrain") if any(f"started with {name} " in note for note in notes)] == [
        "torch",
        "pactrain",
    ]


def test_what_killed_writes_have_left_is_removed(cut: Path, tmp_path: Path) -> None:
    for name in (".config.json.abc.part", "checkpoint/.state.safetensors.xyz.part"):
        (cut / name).write_text("half")
    fit(cut, resume=True)
    assert not list(cut.rglob("*.part"))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".config.json.abc.part").write_text("half")
    fit(tmp_path / "new")
    assert not list((tmp_path / "new").rglob("*.part"))


def test_a_folder_that_is_removed_while_the_run_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(RunError, match=r"cannot be used.*nothing of this run is kept"):
        fit(out, callbacks=[at(2, lambda: shutil.rmtree(out))])


def test_a_run_that_cannot_be_written_at_its_end(cut: Path) -> None:
    (cut / "certificate.json").mkdir()
    with pytest.raises(RunError, match=r"the last checkpoint is kept there.*--resume"):
        fit(cut, resume=True)
    (cut / "certificate.json").rmdir()
    again = fit(cut, resume=True)
    assert torch.equal(again.posterior.log_std, fit(cut.with_name("whole")).posterior.log_std)
