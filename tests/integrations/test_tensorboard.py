"""TensorBoard's event files, read back by TensorBoard's own reader."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import pactrain
from pactrain.integrations.tensorboard import TensorBoard
from tests.interruptions import Crash, interrupt_at
from tests.zoo import build, rows


def read(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """(epoch, value) of every scalar in a folder of event files."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_every_epoch_is_in_the_event_file(tmp_path: Path) -> None:
    with TensorBoard(tmp_path / "run" / "tensorboard") as board:
        result = pactrain.fit(
            build("mlp"), rows(), test=rows(20, seed=2), budget="5 epochs", out=tmp_path / "run", callbacks=[board]
        )
    found = read(tmp_path / "run" / "tensorboard")
    groups = result.history[0]["prior_std"]
    names = {
        "bound/total",
        "bound/risk",
        "bound/kl_term",
        "bound/complexity",
        "bound/kl",
        "bound/gamma",
        "stage",
        "seconds",
    }
    names |= {f"{part}/{score}" for part in ("train", "test") for score in ("loss", "accuracy")}
    assert set(found) == names | {f"{kind}_std/{g}" for kind in ("prior", "posterior") for g in groups}
    for tag, value in {
        "bound/total": lambda r: r["bound"],
        "test/accuracy": lambda r: r["test"]["accuracy"],
        "posterior_std/0": lambda r: r["posterior_std"]["0"],
    }.items():
        expected = [(r["epoch"], pytest.approx(value(r), rel=1e-6)) for r in result.history]
        assert found[tag] == expected


def test_a_resumed_run_has_each_epoch_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    run: dict[str, Any] = {"budget": "9 epochs", "out": tmp_path / "run"}
    folder = tmp_path / "run" / "tensorboard"
    with pytest.raises(Crash), TensorBoard(folder) as board:
        pactrain.fit(
            build("mlp"), rows(), callbacks=[_no_checkpoint_after(3, monkeypatch), board, interrupt_at(6, Crash)], **run
        )
    assert len(read(folder)["bound/total"]) == 6
    with TensorBoard(folder) as board:
        result = pactrain.fit(build("mlp"), rows(), callbacks=[board], resume=True, **run)
    assert len(list(folder.iterdir())) == 2
    expected = [(r["epoch"], pytest.approx(r["bound"], rel=1e-6)) for r in result.history]
    assert read(folder)["bound/total"] == expected


def _no_checkpoint_after(epoch: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A callback after which the run goes on without checkpoints, so that a crash costs epochs."""

    def callback(event: pactrain.runtime.events.Event) -> None:
        if event.phase == "train" and event.done == epoch:
            monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 1e9)

    return callback


def test_command(tmp_path: Path) -> None:
    words = ["train", "--data", "iris", "--budget", "3 epochs", "--tensorboard", "--out", "run"]
    subprocess.run([sys.executable, "-m", "pactrain", *words], cwd=tmp_path, check=True, capture_output=True)
    assert [step for step, _ in read(tmp_path / "run" / "tensorboard")["test/accuracy"]] == [1, 2, 3]


def test_without_the_extra_the_message_has_the_pip_line(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "from pactrain.cli.main import main\nmain(['train', '--data', 'iris', '--tensorboard'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'pactrain[tensorboard]'" in done.stderr
    assert not (tmp_path / "runs").exists()
