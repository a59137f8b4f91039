"""What commands share: tables on the screen, the same as JSON, progress."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from pactrain.runtime.errors import PactrainError

if TYPE_CHECKING:
    from pactrain.runtime.events import Event


FILE_WIDTH = 160
"""Columns of tables where there is no terminal, and nobody says how wide they may be."""


def console(json_to: str | None, *, quiet: bool = False) -> Console:
    """Where people read; standard error when the JSON goes to standard output."""
    screen = Console(stderr=json_to == "-", highlight=False, soft_wrap=True, quiet=quiet)
    terminal = any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not terminal and not os.environ.get("COLUMNS", "").isdigit():
        screen.width = FILE_WIDTH
    return screen


def write_result(json_to: str | None, values: dict[str, Any]) -> None:
    """Write a command's result as one JSON object to a file, or to standard output for '-'."""
    if json_to is None:
        return
    from pactrain.runtime.files import plain, write_json

    if json_to == "-":
        sys.stdout.write(json.dumps(plain(values)) + "\n")
        return
    try:
        write_json(Path(json_to), values)
    except OSError as error:
        raise PactrainError(f"the result could not be written to {json_to}: {error}") from error


def number(value: float, digits: int = 4) -> str:
    """A number as people read it: 283,170 rather than 2.832e+05."""
    large = 10 ** (digits - 1) <= abs(value) < 1e12
    return f"{value:,.0f}" if large else f"{value:.{digits}g}"


def table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    """A plain table, numbers to the right."""
    out = Table(title=title, title_justify="left")
    for i, name in enumerate(columns):
        out.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        out.add_row(*row)
    return out


class Bars:
    """Progress for people: bars with what was last measured and the time left on a terminal, elsewhere only how much there is to do."""

    def __init__(self, screen: Console) -> None:
        self.screen = screen
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[info]}", markup=False),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        )
        self.progress = Progress(*columns, console=screen, transient=True, expand=True) if screen.is_terminal else None
        self.tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Bars":
        if self.progress:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress:
            self.progress.stop()

    def __call__(self, event: "Event") -> None:
        """Show one event."""
        if event.phase == "runs" and "kind" not in event.values:  # the first one of a plan
            self.screen.print(to_do(event), markup=False, highlight=False)
        if self.progress is None:
            return
        if event.phase not in self.tasks:
            self.tasks[event.phase] = self.progress.add_task(event.phase, total=event.total, info="")
        self.progress.update(self.tasks[event.phase], completed=event.done, total=event.total, info=info(event))


def to_do(event: "Event") -> str:
    """How much of a plan there is to do, and how long it may take."""
    left = event.values["left"]
    about = "" if left is None else f"; about {max(1, round(left / 60))} min, by what these took"
    return f"{event.total - event.done} trainings to do, {event.done} in the store{about}"


def info(event: "Event") -> str:
    """What an event has to tell, short enough for a terminal of 80 columns."""
    v = event.values
    if event.phase == "scan":
        return f"std {v['std']:.2g}"
    if event.phase == "runs":
        failed = f", {v['failed']} failed" if v["failed"] else ""
        return f"{v.get('kind', '')}{failed}" + (f", {v['left'] / 60:.0f} min left" if v["left"] is not None else "")
    if event.phase == "download":
        return f"{v['file']} {event.done / 1e6:.1f}/{event.total / 1e6:.1f} MB"
    if event.phase not in ("prior", "train"):
        return f"{event.done}/{event.total}"
    scores = v["test"] or v["train"]
    key = next(k for k in ("accuracy", "rmse", "loss") if k in scores)
    score = f"{100 * scores[key]:.1f} %" if key == "accuracy" else f"{scores[key]:.3g}"
    where = "test" if v["test"] else "train"
    return f"epoch {event.done}/{event.total} stage {v['stage']} loss {v['risk']:.3g} bound {v['bound']:.3g} {where} {score}"
