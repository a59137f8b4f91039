"""Examples in the help: three per command, each one understood, no line wider than the terminal."""

import shlex

import pytest

from pactrain.cli.examples import EXAMPLES
from pactrain.cli.main import COMMANDS, main, parsed


def test_every_command_has_three_examples() -> None:
    assert list(EXAMPLES) == list(COMMANDS)
    assert {len(lines) for lines in EXAMPLES.values()} == {3}


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines if "--help" not in line])
def test_examples_are_understood(line: str) -> None:
    assert parsed(shlex.split(line)[1:])


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        main([name, "--help"])
    usage, *lines = capsys.readouterr().out.splitlines()
    assert usage.startswith(f"usage: pactrain {name} ")
    assert max(map(len, lines)) <= width
    assert "Examples:" in lines
