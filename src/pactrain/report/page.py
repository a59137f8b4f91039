"""One HTML page about one run or several: no script, no network, readable in light and dark, on a phone and with a screen reader."""

import dataclasses
import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pactrain.report.canvas import Drawing
from pactrain.report.figures import comparisons, figures
from pactrain.report.inline import inline_svg
from pactrain.report.read import Run
from pactrain.report.sections import sections, tiles
from pactrain.report.tables import Table
from pactrain.report.words import duration, headline, promised, proved, sentence, trained
from pactrain.runs.sentences import score_text
from pactrain.runtime.versions import versions


def page(runs: list[Run]) -> str:
    """The report of some runs."""
    parts = [_part(run, f"run-{i}") for i, run in enumerate(runs, 1)]
    values: dict[str, Any] = {"parts": parts, "version": versions().get("pactrain", "")}
    if len(runs) == 1:
        links = {section["name"]: section["link"] for section in parts[0]["sections"]}
        values |= {"title": runs[0].name, "lede": trained(runs[0]), "links": links}
    else:
        data = ", ".join(dict.fromkeys(run.data for run in runs))
        links = {"compared": "Side by side"} | {part["key"]: part["name"] for part in parts}
        values |= {"title": f"{len(runs)} runs", "lede": f"On {data}.", "links": links}
        values |= {"summary": _summary(runs), "comparisons": comparisons(runs)}
    return _templates().get_template("page.html.jinja").render(values)


def drawings(runs: list[Run]) -> list[Drawing]:
    """All figures of the page of these runs, with the run's name in theirs where there are several."""
    if len(runs) == 1:
        return figures(runs[0])
    named = [(re.sub(r"\W+", "-", run.name), d) for run in runs for d in figures(run)]
    return [dataclasses.replace(d, name=f"{name}-{d.name}") for name, d in named] + comparisons(runs)


@cache
def _templates() -> Environment:
    """The templates of this package: every value is escaped, and one that is missing is an error."""
    found = Environment(
        loader=PackageLoader("pactrain.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["svg"] = inline_svg
    return found


def _part(run: Run, key: str) -> dict[str, Any]:
    """What the page shows of one run."""
    return {
        "key": key,
        "name": run.name,
        "lede": trained(run),
        "tiles": tiles(run),
        "proved": proved(run),
        "notes": [sentence(note) for note in run.metrics.get("notes", [])],
        "sections": sections(run),
    }


def _summary(runs: list[Run]) -> Table:
    columns = ["run", "data", "on new data", "test", "training", "bound", "weights", "examples", "seed", "time"]
    return Table("The runs beside each other", columns, [_row(run) for run in runs], numbers=7)


def _row(run: Run) -> list[str]:
    best, score = headline(run), run.score
    unit = "" if score == "accuracy" else f"{score} "
    return [
        run.name,
        run.data,
        f"{promised(best)}, {best.label}" if best else "nothing",
        unit + score_text(score, run.scores("test").get(score)),
        unit + score_text(score, run.scores("train").get(score)),
        score_text("bound", run.history[-1]["bound"] if run.history else None),
        f"{run.weights:,}",
        f"{run.config.get('n', 0):,}",
        str(run.config.get("seed")),
        duration(run.metrics["seconds"]) if "seconds" in run.metrics else "going on",
    ]
