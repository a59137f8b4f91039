"""One HTML page about one run or several: no script, no network, readable in light and dark, on a phone and by ear."""

import dataclasses
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pactrain.report import sections
from pactrain.report.canvas import Drawing
from pactrain.report.figures import comparisons, figures
from pactrain.report.read import Run, read_run
from pactrain.report.words import duration, headline, score_text, trained, value_of
from pactrain.runtime.files import plain, write_atomic
from pactrain.runtime.versions import versions

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Even a name that escaped the escaping could load and run nothing."""


def page(runs: list[Run]) -> str:
    """The report of some runs."""
    return _one(runs[0]) if len(runs) == 1 else _several(runs)


def drawings(runs: list[Run]) -> list[Drawing]:
    """All figures of the page of these runs, with the run's name in theirs where there are several."""
    if len(runs) == 1:
        return figures(runs[0])
    named = [(re.sub(r"\W+", "-", run.name), d) for run in runs for d in figures(run)]
    return [dataclasses.replace(d, name=f"{name}-{d.name}") for name, d in named] + comparisons(runs)


def _one(run: Run) -> str:
    links = {"certificate": "New data", "training": "Training", "configuration": "Configuration"}
    body = (
        f"{sections.tiles(run)}"
        f"<h2 id=certificate>What can be said about new data</h2>{sections.certificate(run)}"
        f"<h2 id=training>How training went</h2><h3>Scores</h3>{sections.scores(run)}"
        f"<h3>Figures</h3>{sections.gallery(figures(run), 'figure')}"
        f"<h2 id=configuration>Configuration</h2>{sections.configuration(run)}"
    )
    return _document(run.name, trained(run), links, body)


def _several(runs: list[Run]) -> str:
    links = {f"run-{i}": run.name for i, run in enumerate(runs, 1)}
    overlaid = comparisons(runs)
    body = f"<h2 id=compared>Side by side</h2>{_summary(runs)}"
    if overlaid:
        body += f"<h3>Curves</h3>{sections.gallery(overlaid, 'compared')}"
    for i, run in enumerate(runs, 1):
        body += (
            f"<section aria-labelledby=run-{i}><h2 id=run-{i}>{escape(run.name)}</h2><p class=lede>{escape(trained(run))}</p>"
            f"{sections.tiles(run)}<h3>What can be said about new data</h3>{sections.certificate(run)}"
            f"<h3>How training went</h3>{sections.gallery(figures(run), f'run-{i}')}"
            f"<h3>Configuration</h3>{sections.configuration(run)}</section>"
        )
    names = ", ".join(dict.fromkeys(run.data for run in runs))
    return _document(f"{len(runs)} runs", f"On {names}.", {"compared": "Side by side"} | links, body)


def _summary(runs: list[Run]) -> str:
    columns = ["run", "data", "on new data", "test", "training", "bound", "weights", "examples", "seed", "time"]
    return sections.table("The runs beside each other", columns, [_row(run) for run in runs], numbers=7)


def _row(run: Run) -> list[str]:
    best, score = headline(run), run.score
    unit = "" if score == "accuracy" else f"{score} "
    return [
        run.name,
        run.data,
        f"{best.quantity} ≤ {value_of(best)}, {best.label}" if best else "nothing",
        unit + score_text(score, run.scores("test").get(score)),
        unit + score_text(score, run.scores("train").get(score)),
        score_text("bound", run.history[-1]["bound"] if run.history else None),
        f"{run.weights:,}",
        f"{run.config.get('n', 0):,}",
        str(run.config.get("seed")),
        duration(run.metrics["seconds"]) if "seconds" in run.metrics else "going on",
    ]


def _document(title: str, lede: str, links: dict[str, str], body: str) -> str:
    style = (files("pactrain.report") / "page.css").read_text("utf-8")
    items = "".join(f"<li><a href='#{key}'>{escape(name)}</a></li>" for key, name in links.items())
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        "<meta name=viewport content='width=device-width, initial-scale=1'><meta name=color-scheme content='light dark'>"
        f"<link rel=icon href='data:,'><title>{escape(title)} · pactrain</title><style>{style}</style></head>"
        "<body><a class=skip href='#main'>Skip to the report</a>"
        f"<header><p class=brand>pactrain report</p><h1>{escape(title)}</h1><p class=lede>{escape(lede)}</p></header>"
        f"<nav aria-label='On this page'><ul>{items}</ul></nav><main id=main tabindex=-1>{body}</main>"
        f"<footer>Made by pactrain {escape(versions().get('pactrain', ''))} from the run folder, without network access.</footer>"
        "</body></html>\n"
    )


def write_page(folder: Path, metrics: dict[str, Any]) -> None:
    """Write report.html of a run whose metrics are not on disk yet."""
    write_atomic(folder / "report.html", page([read_run(folder, metrics=plain(metrics))]))
