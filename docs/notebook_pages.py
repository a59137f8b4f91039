"""Notebooks as pages: each is executed when the site is built, and its cells and outputs become Markdown."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

import nbformat
from myst_parser.parsers.sphinx_ import MystParser
from nbclient import NotebookClient

logging.getLogger("traitlets").setLevel(logging.WARNING)

SECONDS = 600
"""The most that one cell may take."""

WIDTH = 92
"""Characters that fit a line of the page."""


def executed(text: str, folder: str | Path) -> Any:
    """A notebook with the outputs of its cells, which run in a folder of their own."""
    book = nbformat.reads(text, as_version=4)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"  # cells call the command pactrain
    try:
        NotebookClient(
            book,
            timeout=SECONDS,
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        ).execute()
    finally:
        os.environ["PATH"] = before
    return book


def page_of(book: Any) -> str:
    """An executed notebook as Markdown."""
    return "\n\n".join(part for cell in book.cells for part in _parts(cell))


def _parts(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    if printed := "".join(output.text for output in cell.outputs if output.output_type == "stream"):
        yield _text(printed)
    for output in cell.outputs:
        data = output.get("data")
        if not data:
            continue
        if "image/png" in data:
            yield _html(
                f'<img alt="{escape(cell.metadata["alt"])}" src="data:image/png;base64,{data["image/png"].strip()}">'
            )
        elif "text/html" in data:
            yield _html(data["text/html"])
        else:
            yield _text(data["text/plain"])


def _text(printed: str) -> str:
    """What a cell prints, in lines that fit the page."""
    lines = [fill(line, WIDTH, subsequent_indent="    ") for line in printed.rstrip().splitlines()]
    return "\n".join(["```text", *lines, "```"])


def _html(text: str) -> str:
    return f'```{{raw}} html\n<div class="notebook-output">{text}</div>\n```'


class NotebookParser(MystParser):
    """Reads a notebook as the page that it is after its execution."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Called by Sphinx."""
        with tempfile.TemporaryDirectory() as folder:
            super().parse(page_of(executed(inputstring, folder)), document)
