"""One HTML page about one run: no script, no network, readable in light and dark."""

import json
from html import escape
from typing import TYPE_CHECKING, Any

from pactrain.certificate import MEANING

if TYPE_CHECKING:
    from pactrain.fit import Result

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #c9d1d9; --a: #0969da; --b: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #3d444d; --a: #58a6ff; --b: #f0883e; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 52rem;
       margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem;
       border-bottom: 1px solid var(--line); } td.n { font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; white-space: pre-wrap; }
svg { width: 100%; height: auto; } .frame { fill: none; stroke: var(--line); } text { fill: var(--ink); font-size: 12px; }
.a { fill: none; stroke: var(--a); stroke-width: 2; } .b { fill: none; stroke: var(--b); stroke-width: 2; stroke-dasharray: 6 3; }
"""


def page(result: "Result") -> str:
    """The report of a run."""
    name = (
        str(result.config.get("data", {}).get("name", "a run"))
        if isinstance(result.config.get("data"), dict)
        else "a run"
    )
    score = (
        "accuracy" if "accuracy" in result.metrics["train"] else "rmse" if "rmse" in result.metrics["train"] else "loss"
    )
    history = result.history
    parts = [
        f"<h1>pactrain: {escape(name)}</h1>",
        "".join(f"<p role='note'>{escape(note)}</p>" for note in result.notes),
        "<h2>Scores of the trained network</h2>",
        _scores(result.metrics),
        "<h2>What can be said about new data</h2>",
        f"<pre>{escape(str(result.certificate))}</pre>",
        "<ul>" + "".join(f"<li><b>{k}</b>: {escape(v)}</li>" for k, v in MEANING.items()) + "</ul>",
        "<h2>The bound during training</h2>",
        _chart("bound", [r["bound"] for r in history], "risk under noise", [r["risk"] for r in history]),
        f"<h2>{score.capitalize()} during training</h2>",
        _chart(
            "training data",
            [r["train"].get(score) for r in history],
            "test data",
            [(r["test"] or {}).get(score) for r in history],
        ),
        "<h2>Configuration</h2>",
        f"<pre>{escape(json.dumps(result.config, indent=1, default=str))}</pre>",
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>pactrain: {escape(name)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _scores(metrics: dict[str, Any]) -> str:
    rows = []
    for part in ("train", "test"):
        for key, value in metrics.get(part, {}).items():
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            rows.append(f"<tr><td>{part}</td><td>{escape(key)}</td><td class='n'>{shown}</td></tr>")
    return f"<table><thead><tr><th>data</th><th>measure</th><th>value</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _chart(name_a: str, a: list[float | None], name_b: str, b: list[float | None]) -> str:
    """Two curves over epochs, the second dashed."""
    values = [v for v in [*a, *b] if v is not None]
    if not values:
        return "<p>No epoch was completed.</p>"
    low, high = min(0.0, *values), max(values)
    span, width, height = (high - low) or 1.0, 640, 240
    keep = max(1, len(a) // 400)

    def line(series: list[float | None], kind: str) -> str:
        points = [
            f"{50 + (width - 60) * i / max(1, len(series) - 1):.1f},{10 + (height - 40) * (1 - (v - low) / span):.1f}"
            for i, v in enumerate(series)
            if v is not None and (i % keep == 0 or i == len(series) - 1)
        ]
        return f"<polyline class='{kind}' points='{' '.join(points)}'/>" if points else ""

    return (
        f"<svg viewBox='0 0 {width} {height}' role='img' aria-label='{escape(name_a)} and {escape(name_b)} over epochs, "
        f"ending at {values[-1]:.3g}'><rect class='frame' x='50' y='10' width='{width - 60}' height='{height - 40}'/>"
        f"{line(a, 'a')}{line(b, 'b')}<text x='4' y='18'>{high:.3g}</text><text x='4' y='{height - 30}'>{low:.3g}</text>"
        f"<text x='50' y='{height - 8}'>epoch 1 to {len(a)}: {escape(name_a)} solid, {escape(name_b)} dashed</text></svg>"
    )
