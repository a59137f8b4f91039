"""The result of a run in sentences, shared by the terminal, notebooks and the report.

Plain functions of the content of config.json and metrics.json, and of the certificate.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pactrain.certification.certificate import UNCLAIMED, Certificate

Values = Mapping[str, Any]

SHOWN_CLAIMS = 2
"""Statements of the certificate that a summary has room for."""

SHOWN_CLASSES = 6
"""Classes whose recall it names."""

UNEVEN = 1.2
"""Times its even share above which the largest class makes accuracy alone misleading."""


def number(value: float | None) -> str:
    """A number as people read it: three digits that count, no exponent where it can be avoided."""
    if value is None or not math.isfinite(value):
        return "not finite"
    if value == 0 or 0.001 <= abs(value) < 10:
        return f"{value:.3g}"
    if 10 <= abs(value) < 10_000:
        return f"{value:,.4g}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.2e}"


def percent(value: float) -> str:
    """A share in percent; the last digit never turns a mistake into none."""
    shown = f"{100 * value:.1f}"
    if shown == "100.0" and value < 1:
        shown = "99.9"
    return f"{shown}\N{NO-BREAK SPACE}%"


def score_text(name: str, value: float | None) -> str:
    """The value of a score with its unit."""
    if value is None:
        return "–"
    if name in ("auc", "f1"):
        return f"{value if value == 1 else min(value, 0.999):.3f}"  # the last digit never makes it perfect
    return percent(value) if name in ("accuracy", "balanced_accuracy", "ece") else number(value)


def main_score(metrics: Values) -> str:
    """The score by which people judge such a network."""
    train = metrics.get("train", {})
    return next(name for name in ("accuracy", "rmse", "loss") if name in train or name == "loss")


def judged_by(metrics: Values) -> str:
    """The rows that tell how good the network is: "test" if any were held out, else "train"."""
    return "test" if metrics.get("test") else "train"


def class_name(config: Values, index: int) -> str:
    """What a class is called, as far as the run knows."""
    classes = config.get("preprocess", {}).get("classes") or ()
    return str(classes[index]) if index < len(classes) else f"class {index}"


def about(config: Values, metrics: Values) -> str:
    """The data and the network in one line."""
    rows = f"{metrics.get('train', {}).get('n', config.get('n', 0)):,} rows to train"
    if metrics.get("test"):
        rows += f", {metrics['test']['n']:,} held out"
    return " · ".join(
        part for part in (data_name(config), rows, _shapes(metrics.get("task", {})), network(config)) if part
    )


def data_name(config: Values) -> str:
    """What the data is called; empty where the run does not know."""
    data = config.get("data")
    given = data.get("name") if isinstance(data, Mapping) else None
    return Path(str(given)).name if given else ""


def network(config: Values) -> str:
    """The network and its size."""
    weights = f"{sum(config.get('groups', {}).values()):,} weights"
    return f"{config['model']}, {weights}" if config.get("model") else f"network with {weights}"


def _shapes(task: Values) -> str:
    features = f"{task['features']:,} features → " if task.get("features") else ""
    if task.get("classes"):
        return f"{features}{task['classes']} classes"
    return f"{features}a number" if task.get("kind") == "regression" else ""


def score(metrics: Values) -> str:
    """The main score, beside what a constant answer and a linear model have."""
    name, part = main_score(metrics), judged_by(metrics)
    where = "on held-out rows" if part == "test" else "on the rows it was trained on"
    said = f"{name} {score_text(name, metrics[part].get(name))} {where}"
    others = [_rival(rival, name) for rival in metrics.get("rivals", {}).values() if name in rival]
    return f"{said} ({'; '.join(others)})" if others else said


def _rival(rival: Values, score: str) -> str:
    return f"{rival['name']}: {score_text(score, rival[score])}"


def details(config: Values, metrics: Values) -> list[str]:
    """Further scores: those of uneven classes, or of a regression; calibration and confusions."""
    found = metrics[judged_by(metrics)]
    lines = []
    if "mae" in found and "spread" in found:
        explained = f"explains {percent(found['r2'])} of the variance (R²); " if found.get("r2", 0) > 0 else ""
        lines.append(
            f"{explained}mean absolute error {number(found['mae'])}, nine in ten below {number(found['error90'])}; "
            f"the target's own standard deviation is {number(found['spread'])}"
        )
    if isinstance(found.get("recall"), list) and is_uneven(metrics):  # a metric of the user's own may have this name
        auc = f", AUC {score_text('auc', found['auc'])}" if "auc" in found else ""
        lines.append(
            f"balanced accuracy {percent(found['balanced_accuracy'])}{auc}, F1 {score_text('f1', found['f1'])}"
        )
        lines.append(f"share of each class that it finds (recall): {_recalls(config, found['recall'])}")
    told = [f"calibration error {percent(found['ece'])}"] if "ece" in found else []
    if metrics.get("confused"):
        true, named, times = metrics["confused"][0]
        told.append(f"most often confused: {class_name(config, true)} taken for {class_name(config, named)} ({times}×)")
    return [*lines, "; ".join(told)] if told else lines


def _recalls(config: Values, recall: list[float | None]) -> str:
    """The recall of each class, the worst first where there are many."""
    known = sorted((r, i) for i, r in enumerate(recall) if r is not None)
    shown = ", ".join(f"“{class_name(config, i)}” {percent(r)}" for r, i in known[:SHOWN_CLASSES])
    return shown + (f", more for the other {len(known) - SHOWN_CLASSES}" if len(known) > SHOWN_CLASSES else "")


def is_uneven(metrics: Values) -> bool:
    """True if the largest class is so large that accuracy alone misleads."""
    constant = metrics.get("rivals", {}).get("constant", {}).get("accuracy")
    classes = metrics.get("task", {}).get("classes")
    return bool(constant and classes and constant > UNEVEN / classes)


def left_out(metrics: Values) -> str:
    """The leave-one-out estimate of the final network; empty where there is none."""
    tried = [found for found in metrics.get("left_out") or () if found["gamma"] == metrics.get("held_gamma")]
    if not tried:
        return ""
    if main_score(metrics) == "accuracy" and "wrong" in tried[-1]:
        return (
            f"estimated from the training rows alone, each left out in turn: accuracy {percent(1 - tried[-1]['wrong'])}"
        )
    return f"estimated from the training rows alone, each left out in turn: loss {number(tried[-1]['loss'])}"


def noticed(metrics: Values) -> list[str]:
    """One line if the search over γ found that the network was memorising, and brought it back."""
    rescue, name = metrics.get("rescue"), main_score(metrics)
    if not rescue:
        return []

    def scores(part: Values) -> str:
        both = [score_text(name, part["train"].get(name))]
        both += [score_text(name, part["test"].get(name))] if part.get("test") else []
        return " / ".join(both)

    rows = "training / held-out" if metrics.get("test") else "training"
    return [
        f"after epoch {rescue['epoch']} it noticed that it was memorising ({rows} {name} {scores(rescue)}) and let the rows move "
        f"the weights less: {scores(metrics)} in the end"
    ]


def promise(certificate: Certificate) -> list[str]:
    """What is known about new data, the strongest first: the sentences of the printed certificate."""
    claims = [f"on new data, with {certificate.confidence}, {claimed}" for claimed in certificate.claims()]
    return claims[:SHOWN_CLAIMS] or [UNCLAIMED, *certificate.silence()]


def summary(config: Values, metrics: Values, certificate: Certificate) -> list[str]:
    """What people look for after training, line by line."""
    estimate = left_out(metrics)
    return [
        about(config, metrics),
        score(metrics),
        *([estimate] if estimate and judged_by(metrics) == "train" else []),
        *promise(certificate),
        *details(config, metrics),
        *noticed(metrics),
        *(certificate.silence() if certificate.claims() else []),
        *certificate.remarks(brief=True),
    ]
