"""Groups of options: every option in the box of its group, under the name it has always had."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from pactrain.cli.main import COMMANDS, parsed
from pactrain.cli.train import Train

BOXES = {
    "train": ["data", "model", "training", "certificate", "output"],
    "compare": ["data", "model", "training", "output"],
    "certify": ["certificate", "data", "model", "output"],
    "verify": ["certificate", "data", "model", "output"],
    "predict": ["data", "model", "output"],
}


@pytest.mark.parametrize("name", BOXES)
def test_help_in_groups(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed([name, "--help"])
    shown = capsys.readouterr().out
    assert re.findall(r"^\W+(\w+) options\b", shown, re.MULTILINE) == BOXES[name]
    options = set(re.findall(r"^\W --([a-z][a-z-]+)", shown, re.MULTILINE))
    named = {field.name.removesuffix("_to").replace("_", "-") for field in fields(COMMANDS[name])}
    places = {"run-folder", "certificate", "data"}  # given by their place in some commands
    assert named - places <= options | {"run"} <= named | {"run"}


def test_a_command_gets_its_options_from_all_groups() -> None:
    command = parsed(["train", "--data", "t.csv", "--out", "here", "--delta", "0.1", "--drop", "a", "b", "--json", "-"])
    assert command == Train(data="t.csv", out=Path("here"), delta=0.1, drop=("a", "b"), json_to="-")
