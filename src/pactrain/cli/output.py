"""Output of all commands: text and tables on the screen, results as JSON."""

import json
import os
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pactrain.runtime.errors import printable

FILE_WIDTH = 160
"""Columns of tables where there is no terminal, and nobody says how wide they may be."""


class Screen(Console):
    """A console on which texts from files cannot do more than be read."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Style a text, its control characters shown as codes."""
        return super().render_str(printable(text), **options)


def console(json_to: str | None, *, quiet: bool = False) -> Console:
    """Where people read; standard error when the JSON goes to standard output."""
    stream = sys.stderr if json_to == "-" else sys.stdout
    there = stream is not None and stream.isatty()  # whatever FORCE_COLOR says: a log file takes no bar
    screen = Screen(stderr=json_to == "-", highlight=False, quiet=quiet, force_terminal=there)
    screen.soft_wrap = not screen.is_terminal  # where nobody looks, a sentence is one line
    terminal = any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not terminal and not os.environ.get("COLUMNS", "").isdigit():
        screen.width = FILE_WIDTH
    return screen


def say(screen: Console, text: str, *, indent: int = 0) -> None:
    """Print a sentence; on a terminal it is wrapped between words, and what follows the first line stands further in."""
    line = " " * indent + text
    if screen.is_terminal:
        line = fill(line, screen.width, subsequent_indent=" " * (indent + 2), break_on_hyphens=False)
    screen.print(line, markup=False, highlight=False)


def write_result(json_to: str | None, values: dict[str, Any]) -> None:
    """Write a command's result as one JSON object to a file, or to standard output for '-'."""
    if json_to is None:
        return
    from pactrain.runtime.files import plain, write_json, writing

    if json_to == "-":
        sys.stdout.write(json.dumps(plain(values)) + "\n")
        return
    with writing("result", json_to):
        write_json(Path(json_to), values)


def number(value: float) -> str:
    """A number as people read it: 283,170 rather than 2.832e+05."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def is_number(text: str) -> bool:
    """True if a text is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    """A plain table, numbers to the right."""
    out = Table(title=title, title_justify="left")
    for i, name in enumerate(columns):
        out.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        out.add_row(*row)
    return out
