"""Values as notebooks show them: small pieces of HTML in the notebook's own colours, every word escaped."""

import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path


def lines_html(title: str, lines: Sequence[str]) -> str:
    """A title and lines below it.

    >>> lines_html("a < b", ["c"])
    '<div><strong>a &lt; b</strong><ul><li>c</li></ul></div>'
    """
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<div><strong>{escape(title)}</strong><ul>{items}</ul></div>"


def table_html(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a title."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, repr=False)
class Page:
    """A page on disk, which a notebook shows in place.

    Attributes:
        path: Where it is.
        html: Its content.
    """

    path: Path
    html: str

    def __repr__(self) -> str:
        return f"Report: {self.path}"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 45rem; border: 0" title="report"></iframe>'

    def open(self) -> bool:
        """Open it in the browser; False if there is none."""
        return webbrowser.open(self.path.resolve().as_uri())
