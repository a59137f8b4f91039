"""The model card of a run: a README.md with the Hugging Face Hub's metadata, and how its certificate can be checked."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pactrain.certification.certificate import Certificate
from pactrain.runs.folder import read_completed
from pactrain.runs.sentences import about, data_name, details, judged_by, noticed, score
from pactrain.runtime.errors import printable
from pactrain.runtime.files import plain
from pactrain.runtime.untrusted import made_from

CARD = "README.md"

SCORES = ("accuracy", "balanced_accuracy", "f1", "auc", "rmse", "mae", "r2", "nll", "ece", "loss")
"""Scores that the metadata names."""

Values = Mapping[str, Any]


def card_of(folder: Path) -> str:
    """Write the model card of a completed run.

    Args:
        folder: The run folder.

    Returns:
        Markdown, beginning with metadata.

    Raises:
        RunError: The run is not complete.
    """
    config, metrics, certificate = read_completed(folder)
    return made_from(
        folder / "metrics.json", lambda _: _card(folder.resolve().name, config, metrics, certificate), metrics
    )


def _card(name: str, config: Values, metrics: Values, certificate: Certificate) -> str:
    metadata = [f"{key}: {json.dumps(plain(value))}" for key, value in _metadata(name, config, metrics).items()]
    return printable("\n".join(["---", *metadata, "---", "", *_body(name, config, metrics, certificate)]) + "\n")


def _metadata(name: str, config: Values, metrics: Values) -> dict[str, Any]:
    """What the Hub reads; values written as JSON are YAML."""
    kind = metrics.get("task", {}).get("kind", "other")
    task = f"tabular-{kind}" if config.get("columns") and kind != "other" else kind
    data = data_name(config) or "not named"
    found = metrics[judged_by(metrics)]
    values = [{"type": key, "value": found[key]} for key in SCORES if found.get(key) is not None]
    result = {"task": {"type": task}, "dataset": {"type": data, "name": f"{data}, {_rows(metrics)}"}, "metrics": values}
    return {
        "library_name": "pactrain",
        "tags": ["pactrain", "pac-bayes", "certificate", *([task] if task != "other" else [])],
        "model-index": [{"name": name, "results": [result]}],
    }


def _rows(metrics: Values) -> str:
    return "held-out rows" if judged_by(metrics) == "test" else "training rows"


def _body(name: str, config: Values, metrics: Values, certificate: Certificate) -> Iterator[str]:
    yield from (f"# {_quoted(name)}", "", _quoted(about(config, metrics)) + ".", "")
    yield from ("```text", str(certificate).replace("`", "'"), "```", "")
    yield f"The certificate, with everything that it was computed from, is `certificate.json` (digest `{certificate.digest}`)."
    yield from ("To check it:", "", "```")
    yield "pactrain verify certificate.json    # its arithmetic alone"
    yield "pactrain verify .                   # made again from these files and the training data (see --data, --model)"
    yield from ("```", "", "## Scores", "")
    yield from (f"* {_quoted(line)}" for line in (score(metrics), *details(config, metrics), *noticed(metrics)))
    yield from ("", "## Use", "", "```python", "import pactrain", "")
    yield f'result = pactrain.load("."{_network(config)})'
    yield from ("result.predict(X).values", "```")
    notes = [*certificate.remarks(), *metrics.get("notes", ())]
    if notes:
        yield from ("", "## Notes", "", *(f"* {_quoted(note)}" for note in notes))


def _network(config: Values) -> str:
    """The second argument of `load`, where the network cannot be made from its name."""
    named = "preprocess" in config and ".py:" not in str(config.get("model", ".py:"))
    return "" if named else ", network"


def _quoted(text: str) -> str:
    """A text without code, tags and links."""
    return text.replace("`", "'").replace("<", "‹").replace("[", "(").replace("]", ")")
