"""Progress for people: one bar for a whole run, in a terminal or a notebook; a line now and then where neither is."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pactrain.runtime.events import Callback, Event

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

LINE_SECONDS = 10.0
"""Time between two lines where no bar can be drawn."""

NAMES = {
    "prior": "training the prior",
    "scan": "measuring",
    "train": "training",
    "block": "judging new rows",
    "certify": "certifying",
    "report": "summing up",
    "runs": "trainings",
    "download": "download",
}

SHARES = {"prior": 0.4, "scan": 0.1, "train": 0.75, "certify": 0.1, "report": 0.05}
"""About how much of a run each phase takes, relative to the others."""


class Bar:
    """Draws events as one bar that is full when the work is done.

    Args:
        screen: Where to draw; where it is no terminal, a line is printed every `LINE_SECONDS`.
        whole_run: True if the work is a training from beginning to end, with all its phases; False if it is one phase.
        clock: Seconds from some moment on.
    """

    def __init__(
        self, screen: "Console", *, whole_run: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.screen, self.clock = screen, clock
        self.phases = list(SHARES) if whole_run else []
        draws = screen.is_terminal or (screen.is_jupyter and find_spec("ipywidgets") is not None)
        self.progress = _drawn_on(screen) if draws else None
        self.part = 0.0
        self._phase, self._began = "", 0  # the present phase, and what had been done of it before
        self._done, self._unit = 0, 0.0  # of the present phase: what the bar has counted, and the share of one step
        self._since = self._last = self._last_line = (
            clock()
        )  # when the phase began; of the last event; of the last line

    def __enter__(self) -> "Bar":
        if self.progress:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress:
            self.progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if not self._phase and event.phase != "prior" and self.phases:
            self.phases.remove("prior")
        if event.phase != self._phase:
            self._phase, self._since, self._began = event.phase, self._last, max(0, event.done - 1)
            self._done, self._unit = 0, SHARES.get(event.phase, 1.0) / max(1, event.total)
        self._last = self.clock()
        self.part = self._part(event)
        if event.phase == "runs" and "kind" not in event.values:  # the first one of a plan
            self.screen.print(to_do(event), markup=False, highlight=False)
        if self.progress is not None:
            (task,), name = self.progress.task_ids, NAMES[event.phase]
            self.progress.update(task, completed=self.part, description=name, info=info(event), left=self._left(event))
        elif self.clock() - self._last_line >= LINE_SECONDS:
            self._last_line = self.clock()
            parts = (NAMES[event.phase], f"{100 * self.part:.0f} %", info(event), self._left(event))
            self.screen.print(", ".join(filter(None, parts)), markup=False, highlight=False)

    def _part(self, event: Event) -> float:
        """The filled part of the bar: each step fills a share of what was empty, its share of the work that is left.

        So the bar never goes back and ends full, although a search over γ may add epochs to those that were announced.
        """
        if event.phase == "block":
            return self.part  # the trainings before and after it are what takes time
        later = self.phases[self.phases.index(event.phase) + 1 :] if event.phase in self.phases else []
        step = self._unit * max(0, event.done - self._done)
        ahead = self._unit * max(0, event.total - self._done) + sum(SHARES[phase] for phase in later)
        self._done = max(self._done, event.done)
        return self.part + (1 - self.part) * min(1.0, step / ahead) if ahead > 0 else self.part

    def _left(self, event: Event) -> str:
        """The time left, from the time that this phase has taken; empty for the scan, as training comes after it."""
        if event.phase == "scan":
            return ""
        if event.phase == "runs":
            seconds = event.values["left"]
        else:
            each = (self._last - self._since) / max(1, event.done - self._began)
            seconds = each * (event.total - event.done)
        return "" if seconds is None or event.done == 0 else f"{_clock(seconds)} left"


def _drawn_on(screen: "Console") -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[info]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False),
    )
    progress = Progress(*columns, console=screen, transient=True, expand=True)
    progress.add_task("starting", total=1.0, info="", left="")
    return progress


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def to_do(event: Event) -> str:
    """How much of a plan there is to do, and how long it may take."""
    left = event.values["left"]
    about = "" if left is None else f"; about {max(1, round(left / 60))} min, by what these took"
    return f"{event.total - event.done} trainings to do, {event.done} in the store{about}"


def info(event: Event) -> str:
    """The content of an event, short enough for a terminal of 80 columns."""
    v = event.values
    if event.phase == "runs":
        failed = f", {v['failed']} failed" if v["failed"] else ""
        return f"{event.done}/{event.total} {v.get('kind', '')}{failed}"
    if event.phase == "download":
        return f"{v['file']} {event.done / 1e6:.1f}/{event.total / 1e6:.1f} MB"
    if event.phase not in ("prior", "train"):
        return ""
    scores = v["test"] or v["train"]
    key = next(k for k in ("accuracy", "rmse", "loss") if k in scores)
    score = f"{100 * scores[key]:.1f} %" if key == "accuracy" else _short(scores[key])
    where = "held out" if v["test"] else "training"
    return f"epoch {event.done}/{event.total}  loss {v['risk']:.3g}  {where} {score}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


@contextmanager
def watched(callbacks: Sequence[Callback], *, progress: bool | None) -> Iterator[Sequence[Callback]]:
    """The callbacks of a run, with a bar among them if somebody is looking.

    Args:
        callbacks: The caller's own.
        progress: True or False; None draws a bar if standard error is a terminal, or in a notebook.
    """
    looked_at = sys.stderr is not None and sys.stderr.isatty()
    in_notebook = "ipykernel" in sys.modules
    if not (looked_at or in_notebook if progress is None else progress):
        yield callbacks
        return
    from rich.console import Console

    with Bar(Console(stderr=not in_notebook), whole_run=True) as bar:
        yield [*callbacks, bar]
