"""What a page is made of, and names that no page should trust."""

import re
from html.parser import HTMLParser

HOSTILE = "<script>alert('1')</script> & \"$x_1$\" 网 {{7*7}}{% raw %}{#"

NAMES = ("classes", "other", "numbers", "hostile")


class Outline(HTMLParser):
    """Collects tags, names of attributes, ids and headings, and sees to it that every element is closed."""

    VOID = ("meta", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.levels: list[int] = []
        self.names: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.names |= set(found)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "action", "xlink:href")]
        self.levels += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
