"""Sections about the model and the data, as plain values."""

from typing import Any

from pactrain.report.canvas import short
from pactrain.report.model_figures import column_figures, model_figures
from pactrain.report.pictures import data_uri
from pactrain.report.read import Run
from pactrain.report.tables import Table
from pactrain.runs.columns import cells
from pactrain.runs.sentences import class_name, is_uneven, main_score, number, percent, score_text

Values = dict[str, Any]

NAMES = {
    "accuracy": "accuracy",
    "rmse": "root mean squared error",
    "loss": "loss",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "f1": "F1",
    "r2": "R²",
    "mae": "mean absolute error",
    "spread": "standard deviation of the target",
    "ece": "calibration error",
}

SHOWN_CELLS = 8
"""Columns of a row that are shown, the most important ones."""


def quality(run: Run) -> Values:
    """How good the network is: scores beside those of its rivals, confusions, reliability, errors."""
    return {
        "rivals": _rivals(run),
        "scores": _scores(run),
        "confusion": _confusion(run),
        "drawings": model_figures(run),
    }


def _rivals(run: Run) -> Table | None:
    """The network beside a constant answer and a linear model."""
    found, score = run.metrics.get("rivals", {}), main_score(run.metrics) if run.metrics else "loss"
    ours = (run.scores("test") or run.scores("train")).get(score)
    if not found:
        return None
    rows = [["the network", score_text(score, ours), f"{run.config.get('n', 0):,}"]]
    rows += [
        [rival["name"], score_text(score, rival[score]), f"{rival['rows']:,}" if "rows" in rival else "–"]
        for rival in found.values()
    ]
    where = "held-out" if run.scores("test") else "training"
    return Table(
        f"Beside simpler answers, on {where} rows", ["", NAMES[score], "rows it learned from"], rows, numbers=2
    )


def _scores(run: Run) -> Table:
    """All scores of the trained network."""
    parts = {name: run.scores(part) for part, name in (("train", "training"), ("test", "held-out")) if run.scores(part)}
    names = [name for name in NAMES if any(name in found for found in parts.values())]
    rows = [[NAMES[name], *(score_text(name, found.get(name)) for found in parts.values())] for name in names]
    rows.append(["rows", *(f"{found['n']:,}" if "n" in found else "–" for found in parts.values())])
    return Table("Scores of the trained network", ["score", *parts], rows, numbers=len(parts))


def _confusion(run: Run) -> Values | None:
    """The table of confusions: counts, and for each cell how dark it is."""
    table = run.analysis.get("confusion")
    if not table:
        return None
    names = [short(class_name(run.config, i), 14) for i in range(len(table))]
    recall: Any = (run.scores("test") or run.scores("train")).get("recall")
    recall = recall if isinstance(recall, list) else []  # a metric of the user's own may have this name
    rows = []
    for i, counts in enumerate(table):
        most = max(1, sum(counts))
        found = percent(recall[i]) if i < len(recall) and recall[i] is not None else "–"
        rows.append({"name": names[i], "cells": [(n, round(100 * n / most)) for n in counts], "recall": found})
    caption = f"What {run.analysis['rows']} rows are (rows) and what the network says (columns)"
    uneven = (
        "The classes are of different sizes: look at each row, not at the accuracy alone."
        if is_uneven(run.metrics)
        else ""
    )
    return {"caption": caption, "names": names, "rows": rows, "note": uneven}


def rows(run: Run) -> Values:
    """Rows to look at: those the network is least sure of, and its worst mistakes."""
    found = run.analysis
    regression = bool(found.get("points"))
    kinds = (
        ("mistakes", "Rows it misses most" if regression else "Its most confident mistakes"),
        ("unsure", "Rows it is least sure of"),
    )
    parts = [{"title": title, **_chosen_rows(run, found[kind])} for kind, title in kinds if found.get(kind)]
    return {"parts": parts, "rows": found.get("rows", "")}


def _chosen_rows(run: Run, chosen: list[Values]) -> Values:
    pictures = [data_uri(run, row) for row in chosen]
    if all(pictures):
        words = [_said(run, row) for row in chosen]
        return {
            "pictures": [{"uri": uri, "words": said} for uri, said in zip(pictures, words, strict=True)],
            "table": None,
        }
    columns, body = _columns(run, chosen), []
    for row in chosen:
        place, *texts = (row.get("labels") or {"row": str(row["row"] + 1)}).values()
        body.append([place, *_answers(run, row), *(_cells(run, row).get(c, "–") for c in columns), *texts])
    labels = list(chosen[0].get("labels") or {})
    place = labels[0] if labels else ""
    heads = [place or "row", *_heads(chosen[0]), *columns, *labels[1:]]
    return {
        "pictures": [],
        "table": Table(
            PLACES.get(place, PLACES[""]).format(str(run.analysis["rows"]).capitalize()), heads, body, numbers=0
        ),
    }


PLACES = {
    "": "{} rows, numbered from 1",
    "row": "{} rows, numbered as in the file",
    "node": "{} nodes, numbered as in the graph",
}
"""What the numbers of rows mean, by what is numbered; short enough for a phone."""


def _heads(row: Values) -> list[str]:
    return ["true", "answer", "sure"] if "confidence" in row else ["true", "answer", "error"]


def _answers(run: Run, row: Values) -> list[str]:
    if "confidence" in row:
        return [class_name(run.config, row["true"]), class_name(run.config, row["answer"]), percent(row["confidence"])]
    return [number(row["true"]), number(row["answer"]), number(row["answer"] - row["true"])]


def _said(run: Run, row: Values) -> str:
    true, answer, sure = _answers(run, row)
    if row["true"] == row["answer"]:
        return f"{true}, correct, {sure} sure"
    return f"{true}, taken for {answer}, {sure} sure"


def _cells(run: Run, row: Values) -> dict[str, str]:
    """The values of a row as a person reads them."""
    encoding, inputs = run.config.get("preprocess"), row.get("inputs")
    if not inputs:
        return {}
    if encoding and encoding.get("numeric") is not None and not encoding.get("node_features"):
        return cells(encoding, inputs)
    return {f"column {i}": number(value) for i, value in enumerate(inputs)}


def _columns(run: Run, chosen: list[Values]) -> list[str]:
    """The columns that are shown: the most important ones, in the order of the file."""
    every = list(_cells(run, chosen[0]))
    weight = {c["column"]: c["loss"] for c in run.analysis.get("importance") or ()}
    best = sorted(every, key=lambda name: -weight.get(name.partition(",")[0], 0.0))[:SHOWN_CELLS]
    return [name for name in every if name in best]


def columns(run: Run) -> Values:
    """Which columns matter, and what became of each."""
    records = run.config.get("columns") or []
    body = [[c["column"], _became(c), str(c["features"]) if c["features"] else "–"] for c in records]
    table = Table("What became of each column of the file", ["column", "became", "features"], body, numbers=1)
    return {"drawings": column_figures(run), "fates": table if records else None}


def _became(record: Values) -> str:
    """What a column became, and what its missing cells did."""
    median = f", {number(record['median'])}" if "median" in record else ""
    return _sort(record) + (f"; {record['missing']:,} missing became the median{median}" if "missing" in record else "")


def _sort(record: Values) -> str:
    kind = record["became"]
    if kind == "left out":
        return f"left out: {record.get('why', '')}"
    if kind == "categories":
        return f"{record['features']} of {record.get('different', record['features'])} categories"
    if kind == "date":
        return f"a date: {', '.join(record.get('parts', ()))}"
    return str({"number": "a number", "text": "free text", "duration": "a duration"}.get(kind, kind))
