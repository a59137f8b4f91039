"""Parts of the page, each a piece of HTML; every text that comes from outside is escaped here."""

import json
from html import escape
from typing import Any

from pactrain.certification.certificate import Certificate
from pactrain.certification.statement import MEANING
from pactrain.report.canvas import Drawing
from pactrain.report.inline import figure_html
from pactrain.report.read import SCORES, Run
from pactrain.report.words import (
    duration,
    finding,
    findings,
    headline,
    proved,
    score_text,
    value_of,
)


def table(caption: str, columns: list[str], rows: list[list[str]], *, numbers: int) -> str:
    """A table that scrolls in its own box, by keyboard too; its last `numbers` columns are aligned to the right."""
    first = len(columns) - numbers

    def cells(row: list[str], tag: str) -> str:
        return "".join(f"<{tag}{' class=n' if i >= first else ''}>{escape(c)}</{tag}>" for i, c in enumerate(row))

    head = cells(columns, "th").replace("<th", "<th scope=col")
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f"<div class=scroll tabindex=0 role=region aria-label='{escape(caption)}'><table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def pairs(values: dict[str, str]) -> str:
    """Names and values."""
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in values.items()) + "</dl>"


def label(name: str) -> str:
    """A label of the certificate."""
    return f"<span class='label {escape(name)}'>{escape(name)}</span>"


def tiles(run: Run) -> str:
    """The numbers that people look for first."""
    score, train, test = run.score, run.scores("train"), run.scores("test")
    items = []
    if test:
        rows = f" {int(test['n']):,}" if "n" in test else ""
        items.append((score_text(score, test.get(score)), f"{score} on{rows} held-out test examples"))
    rows = f" {int(train['n']):,}" if "n" in train else ""
    items.append((score_text(score, train.get(score)), f"{score} on{rows} training examples"))
    best = headline(run)
    if best is not None:
        what = "error" if best.quantity == "0-1 error" else best.quantity
        items.append((f"≤ {value_of(best)}", f"{what} on new data of the {best.predictor}, {best.label}"))
    if "seconds" in run.metrics:
        items.append((duration(run.metrics["seconds"]), f"for {run.metrics['steps']:,} steps, certificate included"))
    tile = "".join(f"<li><p class=value>{escape(v)}</p><p>{escape(w)}</p></li>" for v, w in items)
    return f"<ul class=tiles>{tile}</ul><p class=proved>{escape(proved(run))}</p>{notes(run.metrics.get('notes', []))}"


def notes(texts: list[str]) -> str:
    """Things that the reader must not miss."""
    return "".join(f"<p class=note role=note>{escape(text[:1].upper() + text[1:].rstrip('.'))}.</p>" for text in texts)


def scores(run: Run) -> str:
    """All scores of the trained network."""
    names = [k for k in SCORES if k in run.scores("train")]
    rows = []
    for part, name in (("train", "training"), ("test", "test")):
        if found := run.scores(part):
            count = f"{int(found['n']):,}" if "n" in found else "–"
            rows.append([name, *(score_text(k, found.get(k)) for k in names), count])
    return table(
        "Scores of the trained network, its weights at their means",
        ["data", *names, "examples"],
        rows,
        numbers=len(names) + 1,
    )


def certificate(run: Run) -> str:
    """The certificate in words, its labels explained, and every number it holds."""
    found = run.certificate
    if found is None:
        return "<p>There is no certificate yet.</p>"
    if not run.genuine:
        return notes(["computed again from their inputs, its numbers do not agree, or it was edited"])
    items = ""
    for s in findings(found):
        told = finding(s)
        mark = label("vacuous" if s.vacuous else told.label)
        items += f"<li><p>{mark}{escape(told.sentence)}</p><p>{escape(told.how[:1].upper() + told.how[1:])}.</p></li>"
    meaning = "".join(f"<dt>{label(k)}</dt><dd>{escape(v[:1].upper() + v[1:])}.</dd>" for k, v in MEANING.items())
    meaning += f"<dt>{label('vacuous')}</dt><dd>The bound is no better than the best constant answer.</dd>"
    return (
        f"<p>What is certified holds, all of it together, with {100 * (1 - found.delta):.4g} % confidence, for data that comes "
        f"from where the {found.n:,} training examples came from.</p>"
        f"<ul class=findings>{items}</ul>{notes([*(c.reason for c in found.caveats), *found.notes])}<dl>{meaning}</dl>{_statements(found)}"
    )


def _statements(found: Certificate) -> str:
    """Every number of a certificate."""
    rows = []
    for s in found.statements:
        mark = s.label + (", vacuous" if s.vacuous else "")
        rows.append([s.quantity, s.predictor, s.bound, s.prior or "–", s.when, mark, value_of(s)])
    columns = ["quantity", "predictor", "bound", "prior", "when", "label", "value"]
    title = f"All {len(rows)} numbers were computed again from their inputs when this page was made, and agree."
    return f"<details><summary>All {len(rows)} statements</summary>{table(title, columns, rows, numbers=1)}</details>"


def gallery(drawings: list[Drawing], key: str) -> str:
    """Figures beside each other, as many as fit."""
    inner = "".join(figure_html(d, f"{key}-{d.name}") for d in drawings)
    return f"<div class=figures>{inner}</div>" if inner else "<p>No epoch has been completed.</p>"


def configuration(run: Run) -> str:
    """What determined the run: the main things in words, all of it as JSON."""
    c = run.config
    rules, encoder = c.get("rules", {}), c.get("preprocess", {})
    values: dict[str, Any] = {
        "data": c["data"].get("name") if isinstance(c.get("data"), dict) else run.data,
        "features": f"{len(encoder['numeric'])} numeric, {len(encoder['categorical'])} categorical"
        if encoder
        else None,
        "target": f"{encoder['target']} ({encoder['kind']})" if encoder else None,
        "classes": ", ".join(map(str, encoder["classes"][:20])) if encoder.get("classes") else None,
        "network": f"{run.model}, {run.weights:,} weights in {len(c.get('groups', {}))} groups",
        "loss": c.get("loss"),
        "bound": f"{c.get('bound')} (rules: {rules.get('name')})",
        "prior": c.get("prior"),
        "part of the data for the prior": c.get("prior_data") or None,
        "δ": c.get("delta"),
        "seed": c.get("seed"),
        "made with": ", ".join(f"{k} {v}" for k, v in c.get("versions", {}).items()),
    }
    text = json.dumps({k: v for k, v in c.items() if k != "preprocess"}, indent=1, ensure_ascii=False)
    return (
        pairs({k: str(v) for k, v in values.items() if v is not None})
        + "<details><summary>Everything that determined the run</summary><div class=scroll>"
        + f"<pre tabindex=0 aria-label='Configuration as JSON'>{escape(text)}</pre></div></details>"
    )
