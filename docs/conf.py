"""The documentation's settings, and how this project's docstrings become reStructuredText."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from notebook_pages import NotebookParser

from pactrain.runtime.versions import versions

project = "pactrain"
author = "the pactrain authors"
release = version = versions()["pactrain"]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "pactrain"
html_show_copyright = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

FIELD = re.compile(r"(\w+): +(.*)")


def restructured(lines: list[str]) -> Iterator[str]:
    """Arguments written `name: meaning` become fields, indented equations literal blocks, `code` stays code."""
    inside = ""  # what the lines before were: a field, an equation, or text
    for line in lines:
        line = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line)
        field = FIELD.fullmatch(line)
        if not line.strip():
            inside = ""
        elif field and inside in ("", "field"):
            inside, line = "field", f":param {field[1]}: {field[2]}"
        elif line.startswith(" ") and inside == "field":
            line = "   " + line.strip()
        elif line.startswith(" ") and inside != "equation":
            inside = "equation"
            yield from ("", "::", "")
        elif not line.startswith(" "):
            if inside == "field":
                yield ""
            inside = "text"
        yield line if inside == "equation" else line.replace("|", r"\|")


def setup(app: Any) -> None:
    """Called by Sphinx."""

    def read(_: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
        lines[:] = restructured(lines)

    app.connect("autodoc-process-docstring", read)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
