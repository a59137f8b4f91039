"""`pactrain reproduce headline`, killed and started again."""

import json
import signal
import time
from pathlib import Path

import pytest

from pactrain.experiments import Store
from tests.cli.test_reproduce import finish, start
from tests.experiments.small_images import write_cifar

WORDS = ("headline", "--width", "0.0625", "--images", "150", "--epochs", "3", "--seeds", "1", "--workers", "1")


@pytest.mark.slow
def test_a_killed_headline_goes_on_in_the_middle_of_a_training(tmp_path: Path) -> None:
    write_cifar(tmp_path)
    words = (*WORDS, "--methods", "auto", "adam", "--epochs", "400")
    process = start(tmp_path, *words)
    unfinished = tmp_path / "reproduce.unfinished"
    deadline = time.monotonic() + 300
    while not list(unfinished.glob("*/checkpoint/state.safetensors")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(3)  # its worker ends by itself
    shown = finish(tmp_path, *words, "--show")
    assert "unfinished" in shown
    assert not Store(tmp_path / "reproduce.sqlite").rows()
    out = finish(tmp_path, *words, "--json", "table.json")
    assert "auto" in out
    rows = Store(tmp_path / "reproduce.sqlite").rows()
    assert [row.error for row in rows] == [None, None]
    assert not list(unfinished.iterdir())  # what was kept to go on is gone
    found = json.loads((tmp_path / "table.json").read_text())
    assert [line["name"] for line in found["lines"]] == ["auto", "adam"]
    again = finish(tmp_path, *words, "--show")  # from the store alone
    assert "(1 of 1)" in again
    assert rows == Store(tmp_path / "reproduce.sqlite").rows()
