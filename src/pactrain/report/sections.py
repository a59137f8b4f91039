"""The sections of the page as plain values.  To add one: a function here, its line in SECTIONS, its macro in sections.html.jinja."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pactrain.certification.certificate import UNCLAIMED, Certificate
from pactrain.certification.statement import MEAN, MEANING
from pactrain.report.figures import method_figures, training_figures
from pactrain.report.model_sections import columns, quality, rows
from pactrain.report.read import Run
from pactrain.report.tables import Table
from pactrain.report.words import finding, headline, promised, sentence, value_of
from pactrain.runs.sentences import left_out, noticed, score_text

Values = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A section: the name of its macro and anchor, its entry in the navigation, its heading, and the function of its values."""

    name: str
    link: str
    title: str
    content: Callable[[Run], Values]


def tiles(run: Run) -> list[tuple[str, str]]:
    """The numbers that people look for first, each with its words."""
    score, train, test = run.score, run.scores("train"), run.scores("test")
    items = []
    if test:
        count = f" {int(test['n']):,}" if "n" in test else ""
        items.append((score_text(score, test.get(score)), f"{score} on{count} held-out rows"))
    rival = _best_rival(run)
    if rival:
        items.append((score_text(score, rival[score]), f"{score} of {rival['name']} on the same rows"))
    count = f" {int(train['n']):,}" if "n" in train else ""
    items.insert(1 if test else 0, (score_text(score, train.get(score)), f"{score} on{count} training rows"))
    best = headline(run)
    if best is not None:
        whose = "" if best.predictor == MEAN else f" ({best.predictor})"
        text = promised(best)  # a tile has room for a number
        right = "right " if text.endswith(" right") else ""
        items.append((text.removesuffix(" right"), f"{right}on new data{whose}, {best.label}"))
    return items


def _best_rival(run: Run) -> Values | None:
    """The better of the constant answer and the linear model."""
    found = [rival for rival in run.metrics.get("rivals", {}).values() if run.score in rival]
    best = max if run.score == "accuracy" else min
    return best(found, key=lambda rival: rival[run.score], default=None)


def certificate(run: Run) -> Values:
    """The certificate in words, its labels explained, and every number it holds."""
    found = run.certificate
    if found is None or not run.genuine:
        return {"state": "missing" if found is None else "changed"}
    meaning = {name: sentence(text) for name, text in MEANING.items()}
    return {
        "state": "genuine",
        "confidence": found.confidence,
        "n": f"{found.n:,}",
        "findings": [finding(s) for s in found.findings()],
        "coverage": _coverage(run),
        "silence": [*([] if found.claims() else [UNCLAIMED]), *found.silence()],
        "notes": [sentence(text) for text in (*(c.reason for c in found.caveats), *found.notes)],
        "meaning": meaning | {"vacuous": "The bound is no better than the best constant answer."},
        "statements": _statements(found),
    }


def _coverage(run: Run) -> str:
    """What intervals or sets of 90 % are like; empty if there are none."""
    if run.calibration is None:
        return ""
    unit = (run.config.get("preprocess") or {}).get("target_std", 1.0)
    return run.calibration.in_words(run.config["answers"], unit)


def _statements(found: Certificate) -> Table:
    """Every number of a certificate."""
    rows = [[s.quantity, s.predictor, s.bound, s.prior or "–", s.when, s.mark, value_of(s)] for s in found.statements]
    columns = ["quantity", "predictor", "bound", "prior", "when", "label", "value"]
    title = f"All {len(rows)} numbers were computed again from their inputs when this page was made, and agree."
    return Table(title, columns, rows, numbers=1)


def training(run: Run) -> Values:
    """The learning curves with their story, and what the training rows alone say about new ones."""
    story = [sentence(text) for text in noticed(run.metrics)] if run.metrics else []
    estimate = left_out(run.metrics) if run.metrics else ""
    return {"story": story, "estimate": sentence(estimate) if estimate else "", "drawings": training_figures(run)}


def method(run: Run) -> Values:
    """What training minimised, and the noise that it learned."""
    return {"drawings": method_figures(run)}


def configuration(run: Run) -> Values:
    """What determined the run: the main things in words, all of it as JSON."""
    c = run.config
    rules, encoder = c.get("rules", {}), c.get("preprocess", {})
    values: Values = {
        "data": c["data"].get("name") if isinstance(c.get("data"), dict) else run.data,
        "features": _features(encoder) if encoder else None,
        "target": f"{encoder['target']} ({encoder['kind']})" if encoder else None,
        "classes": ", ".join(map(str, encoder["classes"][:20])) if encoder.get("classes") else None,
        "network": f"{run.model}, {run.weights:,} weights in {len(c.get('groups', {}))} group{'s' * (len(c.get('groups', {})) != 1)}",
        "loss": c.get("loss"),
        "bound": f"{c.get('bound')} (rules: {rules.get('name')})",
        "prior": c.get("prior"),
        "part of the data for the prior": c.get("prior_data") or None,
        "δ": c.get("delta"),
        "seed": c.get("seed"),
        "made with": ", ".join(f"{k} {v}" for k, v in c.get("versions", {}).items()),
    }
    text = json.dumps({k: v for k, v in c.items() if k != "preprocess"}, indent=1, ensure_ascii=False)
    return {"main": {k: str(v) for k, v in values.items() if v is not None}, "json": text}


def _features(encoder: Values) -> str:
    """How many columns of each sort are learned from."""
    counts = {sort: len(encoder.get(sort, ())) for sort in ("numeric", "categorical", "text")}
    counts["of each node"] = encoder.get("node_features", 0)
    return ", ".join(f"{count:,} {sort}" for sort, count in counts.items() if count)


SECTIONS = (
    Section("quality", "Quality", "How good it is", quality),
    Section("rows", "Rows", "Rows to look at", rows),
    Section("columns", "Columns", "What it learned from", columns),
    Section("training", "Training", "How training went", training),
    Section("certificate", "New data", "What can be said about new data", certificate),
    Section("method", "Method", "The noise and the bound", method),
    Section("configuration", "Configuration", "Configuration", configuration),
)


def sections(run: Run) -> list[Values]:
    """The sections of a run that have something to show."""
    every = [(section, section.content(run)) for section in SECTIONS]
    return [
        {"name": section.name, "link": section.link, "title": section.title, "content": content}
        for section, content in every
        if any(content.values())
    ]
