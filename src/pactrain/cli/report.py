"""`pactrain report`: one page about one run or several."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pactrain.cli.option_types import File, Folder, JsonFile
from pactrain.cli.output import console, write_result


@dataclass
class Report:
    """Write one self-contained HTML page about runs: scores, certificate in words, figures, configuration."""

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN …", help_behavior_hint="")]
    """Folders made by `pactrain train`, finished or not; several are shown side by side."""
    out: File = None
    """The page, or a folder for it; by default report.html in the run folder, or here for several runs."""
    figures: Folder = None
    """A folder to save each figure to as a file of its own."""
    format: Literal["svg", "png", "pdf"] = "svg"
    """What kind of files."""
    json_to: JsonFile = None
    """Write where everything is, and the numbers of the runs, as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        from pactrain.report import summaries, write_figures, write_report

        page = write_report(list(self.runs), self.out)
        screen.print(f"Report: {page} ({page.stat().st_size / 1000:,.0f} kB)", markup=False)
        files = write_figures(list(self.runs), self.figures, self.format) if self.figures else []
        if files:
            screen.print(f"{len(files)} figures in {self.figures}", markup=False)
        values = {"report": str(page), "figures": [str(f) for f in files], "runs": summaries(list(self.runs))}
        write_result(self.json_to, values)
        return 0
