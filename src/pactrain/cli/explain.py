"""`pactrain certify --explain`: which certificate suits the data and the network of a run, and why, in ten lines."""

from pathlib import Path
from typing import Any

from pactrain.bounds.held_out import clopper_pearson
from pactrain.bounds.progressive import RATIO, progressive_bound
from pactrain.certification.certificate import Certificate
from pactrain.certification.statement import claim
from pactrain.cli.run_folders import read_config
from pactrain.runtime.untrusted import made_from, read_json

ASSUMED = 0.05
"""Error that is assumed where a run has none to show on rows that it was not trained on."""

HELD_OUT = 0.2
"""Part of the rows that a test set takes in the comparison."""


def explanation(run: Path) -> list[str]:
    """The lines for a completed run.

    Args:
        run: A folder made by `pactrain train`.

    Returns:
        Up to ten sentences.
    """
    file, config, certificate = run / "metrics.json", read_config(run), Certificate.read(run / "certificate.json")
    return made_from(file, lambda metrics: _lines(config, metrics, certificate), read_json(file))


def _lines(config: dict[str, Any], metrics: dict[str, Any], certificate: Certificate) -> list[str]:
    facts, delta = metrics["certificate"], certificate.delta
    rows, weights = round(metrics["train"]["n"] / (1 - config["prior_data"])), sum(config["groups"].values())
    certified = [s for s in certificate.findings() if s.label == "certified"]
    proved = claim(min(certified, key=lambda s: s.value)) if certified else "nothing useful"
    lines = [
        f"This run: {rows:,} rows, {weights:,} weights, {metrics['seconds']:.0f} s; certificate {config['certificate']}.",
        f"Proved so far: {proved}.",
    ]
    if "accuracy" not in metrics["train"]:
        return [
            *lines,
            _standard(certificate, rows, config),
            "--prior-data 0.5: how often the error exceeds a limit, and the squared error up to it, for a predictor that half of the rows "
            "gave; the other half judges it. About 1.5 times the time.",
            f"--test-fraction {HELD_OUT}: nothing about the error, but intervals around the answers to new rows that hold as often as you "
            "ask for (pactrain predict --coverage). No more time.",
            "--certificate progressive and recursive: only for classification.",
        ]
    error, source = _error(metrics)
    early, where = _error_of_earlier(facts.get("blocks")) or (error, "")
    if where and not metrics.get("test"):
        error, source, where = early, where, ""
    taken = f"right in {_percent(1 - error)} of the cases ({source})"
    if where:
        taken += f", and those with fewer rows in {_percent(1 - early)} ({where})"
    more = " (rows that are no longer held out add to them)" if metrics.get("test") else ""
    half, held = max(1, rows // 2), max(1, round(HELD_OUT * rows))
    judged = clopper_pearson(round(early * half), half, delta / 2)
    tested = clopper_pearson(round(error * held), held, delta)
    on_the_way = progressive_bound(
        [(max(1, half // RATIO), round(early * half / RATIO)), (half, round(early * half))], delta
    )
    return [
        *lines,
        f"What follows are estimates of the proved accuracy from these {rows:,} rows{more}, taking the network to be {taken}.",
        _standard(certificate, rows, config),
        "--certificate recursive: all rows are trained on and counted, for a predictor that draws new weights for each answer; it says most "
        "from tens of thousands of rows on. Some accuracy, and about 2.5 times the time.",
        f"--prior-data 0.5: {_percent(1 - judged)}, for the network that half of the rows gave; the other half judges it. "
        "About 1.5 times the time; less accurate if rows are few.",
        f"--certificate progressive: {_percent(1 - on_the_way)}, for the networks on the way, judged by {half:,} rows; the delivered "
        "one is the next, trained on all rows. About twice the time.",
        f"--test-fraction {HELD_OUT}: {_percent(1 - tested)}, for the delivered network itself, from {held:,} rows that it is never "
        "trained on. No more time.",
        _advice(on_the_way, judged, tested),
        "Ask for one certificate and keep it: choosing the best of several afterwards is not paid for.",
    ]  # fmt: skip


def _standard(certificate: Certificate, rows: int, config: dict[str, Any]) -> str:
    """What the standard certificate rests on."""
    nats = next((s.inputs["kl"] / certificate.n for s in certificate.statements if "kl" in s.inputs), None)
    here = "" if nats is None or config["prior_data"] else f"; here {nats:.2g}"
    return (
        f"Standard: all {rows:,} rows are trained on and counted, at no other cost; it proves something only where each row changed the "
        f"network little (less than about 0.1 nats of information per row{here})."
    )


def _error(metrics: dict[str, Any]) -> tuple[float, str]:
    """The error of the delivered network on rows that it was not trained on, and where it was seen."""
    if metrics.get("test"):
        return 1 - metrics["test"]["accuracy"], "on the test rows"
    return ASSUMED, "assumed: no rows were held out"


def _error_of_earlier(blocks: list[list[int]] | None) -> tuple[float, str] | None:
    """The error of the networks on the way to it, if a progressive certificate has judged them."""
    if not blocks or len(blocks) < 2:
        return None
    return sum(k for _, k in blocks[1:]) / sum(n for n, _ in blocks[1:]), "on blocks before they were trained on"


def _advice(on_the_way: float, judged: float, tested: float) -> str:
    """The best of the estimates, in words."""
    if tested <= min(on_the_way, judged):
        return "Advice: hold rows out; there are enough of them."
    if on_the_way <= judged or on_the_way < 1.2 * judged:
        return "Advice: --certificate progressive --test-fraction 0: close to the best number, and no row is lost to the network."
    return "Advice: --prior-data 0.5 --test-fraction 0: by far the best number; half of the rows are the price."


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
