"""The sheet that figures are drawn on: one look for all of them, and the files they are saved to."""

import io
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pactrain.runtime.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Format = Literal["svg", "png", "pdf"]
T = TypeVar("T")

INK, MUTED, GRID = "#1c2430", "#5d6778", "#dfe3ea"
SERIES = ("#2368c4", "#c75f0a", "#0b7f80", "#a8387e", "#66741a", "#6a50c7")
"""Colours of the light page; the page names each, so that its dark form can replace them."""

SIZE = (5.0, 3.3)
"""Inches.  Small, so that letters can still be read when the figure is as wide as a phone."""

RIGHT, BOTTOM, ROW = 0.14, 0.54, 0.23
"""Inches beside and below the axes, and for a row of the legend."""

POINTS = 160
"""Points of a curve: more cannot be told apart at this size, and make the page heavy."""

SETTINGS: Any = {
    "axes.edgecolor": GRID,
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10.5,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "svg.fonttype": "none",
    "svg.hashsalt": "pactrain",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}


@dataclass(frozen=True)
class Drawing:
    """A figure, what it shows in words for those who cannot see it, and how to read it."""

    name: str
    title: str
    alt: str
    caption: str
    figure: "Figure"


def canvas(size: tuple[float, float] = SIZE, *, left: float = 0.84) -> tuple["Figure", "Axes"]:
    """An empty figure with one pair of axes, `left` inches from its edge: the same in all, so that they align."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=size)
        axes = figure.add_subplot()
    figure.subplots_adjust(left / size[0], BOTTOM / size[1], 1 - RIGHT / size[0], 1 - ROW / size[1])
    axes.set_axisbelow(True)
    return figure, axes


def legend(axes: "Axes", columns: int = 3) -> None:
    """Names of the curves, in rows of their own above the axes."""
    from matplotlib import rc_context

    handles, names = axes.get_legend_handles_labels()
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = figure.get_figheight()
    figure.subplots_adjust(top=1 - (ROW * math.ceil(len(names) / columns) + 0.1) / height)
    with rc_context(SETTINGS):
        figure.legend(
            handles,
            names,
            loc="upper left",
            ncols=columns,
            fontsize=10,
            handlelength=1.5,
            columnspacing=1.3,
            borderaxespad=0.1,
        )


def rendered(figure: "Figure", form: Format, *, transparent: bool = False) -> bytes:
    """The figure as the content of a file; epochs are marked at whole numbers, however few there are."""
    from matplotlib import rc_context
    from matplotlib.ticker import MaxNLocator

    for axes in figure.axes:
        if axes.get_xlabel().startswith("epoch"):
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    out = io.BytesIO()
    metadata: dict[Format, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with rc_context(SETTINGS), warnings.catch_warnings():
        # A name in a script that the font lacks: browsers have other fonts, and a report must not fail for it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(out, format=form, transparent=transparent, dpi=200, metadata=metadata[form])
    return out.getvalue()


def save(drawings: Sequence[Drawing], folder: Path, form: Format) -> list[Path]:
    """Write each drawing to a file of its own."""
    paths = [folder / f"{drawing.name}.{form}" for drawing in drawings]
    for drawing, path in zip(drawings, paths, strict=True):
        write_atomic(path, rendered(drawing.figure, form))
    return paths


def thin(values: Sequence[T], points: int = POINTS) -> list[T]:
    """At most `points` of the values, evenly spaced, with the first and the last."""
    if len(values) <= points:
        return list(values)
    return [values[round(i * (len(values) - 1) / (points - 1))] for i in range(points)]


def number(value: float | None) -> float:
    """A value of the history, where null stands for one that was not finite."""
    return math.nan if value is None else float(value)


def short(name: str, length: int = 22) -> str:
    """A name as long as a legend can bear."""
    line = " ".join(name.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def stage_line(axes: "Axes", epochs: int, total: int) -> None:
    """Mark where the second stage begins."""
    if not 0 < epochs < total:
        return
    axes.axvline(epochs + 0.5, color=INK, linewidth=1, linestyle=(0, (2, 2)))
    where, top = (epochs + 0.5, 1.0), axes.get_xaxis_transform()
    for text, side in (("stage 1 ", "right"), (" 2", "left")):
        axes.annotate(text, where, xycoords=top, ha=side, va="top", color=INK, fontsize=9.5)


def logarithmic(axes: "Axes", values: Sequence[float], *, axis: Literal["x", "y"] = "y") -> None:
    """A logarithmic axis where all values are positive and span more than a factor of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    finite = [v for v in values if math.isfinite(v)]
    if not finite or min(finite) <= 0 or max(finite) <= 10 * min(finite):
        return
    (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
    line = axes.xaxis if axis == "x" else axes.yaxis
    line.set_major_locator(LogLocator(numticks=6))
    line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    line.set_minor_formatter(NullFormatter())


def large_numbers(axes: "Axes") -> None:
    """Few ticks, thousands as k and millions as M: long numbers would overlap."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for line in (axes.xaxis, axes.yaxis):
        line.set_major_locator(MaxNLocator(5))
        line.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


def tick(value: float) -> str:
    """A number as short as a tick's label has to be.

    >>> tick(250_000), tick(1_500_000), tick(0.25)
    ('250k', '1.5M', '0.25')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (size == 1e6 and abs(value) >= size):
            return f"{value / size:g}{letter}"
    return f"{value:g}"
