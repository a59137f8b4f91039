"""Figures as part of a page: SVG in the page's own colours and fonts, with ids that are unique on the page."""

import re
from xml.etree import ElementTree

from pactrain.report.canvas import GRID, INK, MUTED, SERIES, Drawing, rendered

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

COLOURS = {INK: "ink", MUTED: "muted", GRID: "grid"} | {colour: f"c{i}" for i, colour in enumerate(SERIES)}

_COLOUR = re.compile("|".join(COLOURS), re.IGNORECASE)
_FONT = re.compile(r"font: (?:[a-z]+ )*([\d.]+)px [^;]*;?")
_REFERENCE = re.compile(r"#([\w-]+)")


def inline_svg(drawing: Drawing, key: str) -> str:
    """The drawing as an `svg` element, its words escaped by the writer of XML; `key` must be new for each figure of a page."""
    root = ElementTree.fromstring(rendered(drawing.figure, "svg", transparent=True))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    used = _references(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        _adapt(element, key, used)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": drawing.alt}
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    return re.sub(r">\s+<", "><", re.sub(r' xmlns(:\w+)?="[^"]*"', "", text))


def _references(root: ElementTree.Element) -> set[str]:
    """Ids that something in the drawing points to."""
    found: set[str] = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.endswith("href") or "url(" in value:
                found |= set(_REFERENCE.findall(value))
    return found


def _adapt(element: ElementTree.Element, key: str, used: set[str]) -> None:
    """Ids made the page's own or dropped, colours by name, letters of the page."""
    attributes = dict(element.attrib)
    element.attrib.clear()
    for name, value in attributes.items():
        if name == "id":
            if value in used:
                element.set("id", f"{key}-{value}")
            continue
        if name == f"{{{XLINK}}}href":
            name = "href"
        if name == "href" or "url(" in value:
            value = _REFERENCE.sub(lambda m: f"#{key}-{m[1]}" if m[1] in used else m[0], value)
        elif name == "style":
            value = _FONT.sub(r"font-size: \1px;", value)
            value = _COLOUR.sub(lambda m: f"var(--{COLOURS[m[0].lower()]})", value)
        element.set(name, value)
