"""The report about runs: one self-contained page, and its figures as files.

write_report([Path("runs/digits")])                   # runs/digits/report.html again
write_figures([Path("runs/digits")], Path("figures"))
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pactrain.report.canvas import Format
from pactrain.runtime.errors import RunError
from pactrain.runtime.files import write_atomic, writing
from pactrain.runtime.untrusted import made_from

if TYPE_CHECKING:
    from pactrain.runs.result import Result


def write_report(runs: list[Path], out: Path | None = None) -> Path:
    """Write the page of one run (by default into its folder) or of several; where it is."""
    from pactrain.report.page import page
    from pactrain.report.read import read_runs

    if not runs:
        raise RunError("a report needs at least one run folder")
    path = out or (runs[0] if len(runs) == 1 else Path())
    if path.is_dir() or not path.suffix:
        path = path / "report.html"
    content = made_from(runs[0], lambda paths: page(read_runs(paths)), runs)
    with writing("report", path):
        write_atomic(path, content)
    return path


def page_of(result: "Result") -> str:
    """The page about a result, in memory."""
    from pactrain.report.page import page  # here: drawing is slow to import, and only the end of a run draws
    from pactrain.report.read import run_of

    return page([run_of(result)])


def write_figures(runs: list[Path], folder: Path, form: Format = "svg") -> list[Path]:
    """Write the figures of a report as files; where they are."""
    from pactrain.report.canvas import save
    from pactrain.report.page import drawings
    from pactrain.report.read import read_runs

    with writing("figures", folder):
        return save(made_from(folder, lambda paths: drawings(read_runs(paths)), runs), folder, form)


def summaries(runs: list[Path]) -> list[dict[str, Any]]:
    """The numbers of each run as plain values."""
    from pactrain.report.read import Run, read_runs
    from pactrain.report.words import proved, trained

    def summary(path: Path, run: Run) -> dict[str, Any]:
        return {
            "run": str(path),
            "data": run.data,
            "model": run.model,
            "weights": run.weights,
            "n": run.config.get("n"),
            "seed": run.config.get("seed"),
            "metrics": run.metrics,
            "trained": trained(run),
            "stated": proved(run),
        }

    return [made_from(path, partial(summary, path), run) for path, run in zip(runs, read_runs(runs), strict=True)]
