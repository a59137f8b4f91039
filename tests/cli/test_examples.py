"""Examples in the help: three per command, each one understood, no line wider than the terminal."""

import shlex

import pytest

from pactrain.cli.examples import ABOUT, EXAMPLES, START
from pactrain.cli.main import COMMANDS, main, parsed


def test_every_command_has_three_examples() -> None:
    assert list(EXAMPLES) == list(COMMANDS)
    assert {len(lines) for lines in EXAMPLES.values()} == {3}


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
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


@pytest.mark.parametrize("words", [[], ["--help"]])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_first_screen_says_what_it_is_and_where_to_start(
    words: list[str], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    assert ABOUT[1:] in " ".join(shown.split())
    assert all(f"\n  {line}" in shown for line in [*START, *COMMANDS])
    assert shown.rstrip().count("\n") < 40


@pytest.mark.parametrize("line", list(START))
def test_where_to_start_is_understood(line: str) -> None:
    assert parsed(shlex.split(line)[1:])
