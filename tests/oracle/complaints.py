"""An oracle for certificates: every statement, with every input, is computed again from weights, rows and seeds.

Nothing of pactrain is imported: the formulas are those of docs/certificates.md (`formulas.py`), the networks run in float64
(`networks.py`).  A statement, an input or an event that the oracle does not know is a complaint.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.oracle.formulas import GAMMAS, VALUES
from tests.oracle.statements import END, Moment, Run, expectations
from tests.oracle.tolerances import Inputs, Number, exact, single


def complaints(record: Mapping[str, Any], run: Run) -> list[str]:
    """All that is wrong with a record, as to_dict() or certificate.json gives it."""
    expected = expectations(run)
    keys = [tuple(s[k] for k in ("quantity", "predictor", "bound", "prior", "when")) for s in record["statements"]]
    found: list[str] = []
    if sorted(keys) != sorted(expected):
        found.append(f"statements: {sorted(set(keys) ^ set(expected))} of {len(keys)}")
    for key, s in zip(keys, record["statements"], strict=True):
        if key in expected:
            found += [f"{' / '.join(key)}: {problem}" for problem in _about(s, expected[key])]
    return [*found, *_about_record(record, run), *_labels(record, run)]


def _about(s: Mapping[str, Any], expected: Inputs) -> list[str]:
    inputs = s["inputs"]
    if set(inputs) != set(expected):
        return [f"inputs {sorted(set(inputs) ^ set(expected))} are not known or missing"]
    wrong = [f"{k} is {inputs[k]!r}, not {v.value!r}" for k, v in expected.items() if not v.is_near(inputs[k])]
    value = VALUES[s["bound"]](inputs)
    return wrong if exact(value).is_near(s["value"]) else [*wrong, f"the value is {s['value']!r}, not {value!r}"]


def _about_record(record: Mapping[str, Any], run: Run) -> Iterator[str]:
    """Everything beside the statements."""
    now, n = Moment(run, END), len(run.rows)
    budget = {event: exact(delta) for event, delta in run.budget.items()}
    if set(record["budget"]) != set(budget) or not all(budget[k].is_near(v) for k, v in record["budget"].items()):
        yield f"the budget is {record['budget']}, not {run.budget}"
    if (record["n"], record["delta"], record["seed"]) != (n, run.delta, run.seed):
        yield f"n, δ and seed are {record['n'], record['delta'], record['seed']}"
    if spent(record["statements"]) > run.delta * (1 + 1e-9):
        yield f"{spent(record['statements'])} of δ is spent"
    if record["digest"] != digest(record):
        yield "the digest does not fit"
    measured: dict[str, Any] = dict(record["measured"])
    loss = measured.pop("loss")
    if not run.classes:
        low, high = measured.pop("psi_interval")
        expected_low, expected_high = psi_interval(now)
        if not (expected_low.is_near(low) and expected_high.is_near(high)):
            yield f"ψ is said to lie in {low, high}, not {expected_low.value, expected_high.value}"
    own: dict[str, Any] = {"n": n, "values": now.measured.values, "scheme": now.measured.scheme, "draws": run.draws}
    if measured != own:
        yield f"measured is {measured}, not {own}"
    if not single(float(now.measured.losses.loss.mean())).is_near(loss):
        yield f"the mean loss under noise is {loss}"


LABELS = ("heuristic", "estimated", "certified")


def _labels(record: Mapping[str, Any], run: Run) -> Iterator[str]:
    """What must hold of labels, and of the answers that a statement has to beat ."""
    allowed = min((LABELS.index(caveat["label"]) for caveat in record.get("caveats", ())), default=2)
    for s in record["statements"]:
        what, label = f"{s['bound']}, {s['when']}", LABELS.index(s["label"])
        proven = s["bound"] in (
            "kl",
            "bernstein",
            "disintegrated",
            "counted rows",
            "test set",
            "progressive",
            "recursive",
        )
        if label > (2 if proven else 1 if "unb" in s["bound"] else 0):
            yield f"{what} is called {s['label']}"
        if label > allowed and s["bound"] != "test set":
            yield f"{what} is called {s['label']} against {record['caveats']}"
        constant, best = s["constant_answer"], constant_answer(s, run)
        if s["quantity"] == "0-1 error" and constant is None:
            yield f"{what} has no constant answer"
        if constant is not None and (best is None or not single(best).is_near(constant)):
            yield f"{what}: the constant answer has {constant}, not {best}"
        if constant is not None and s["value"] >= constant and label:
            yield f"{what} is vacuous and called {s['label']}"


def constant_answer(s: Mapping[str, Any], run: Run) -> float | None:
    """What the best constant answer has on the rows of a statement: the majority class, the shares of the classes, the mean target."""
    rows = run.test if s["bound"] == "test set" else run.rows
    quantity, _, last = s["quantity"].rpartition(" ")
    if rows is None or s["bound"].startswith("training"):
        return None
    if quantity == "share of errors above":
        return float((run.constants > (4.0 ** round(math.log(float(last), 4))) ** 2).mean(1).min())
    if quantity == "squared error cut off at":
        return float(np.minimum(run.constants, s["inputs"]["scale"]).mean(1).min())
    if not run.classes:
        return float(rows.target.numpy().var()) / run.loss_unit
    shares = np.unique(rows.target.numpy(), return_counts=True)[1] / len(rows)
    if s["quantity"] == "0-1 error":
        return float(1 - shares.max())
    if quantity != "cross-entropy smoothed by":
        return None
    even = math.exp(-s["inputs"]["limit"])  # ε/K
    return float(-(shares * np.log((1 - float(last)) * shares + even)).sum())


def psi_interval(moment: Moment) -> tuple[Number, Number]:
    """At the best γ: the mean over draws less two standard errors, the largest draw plus two of the largest of its own."""
    table, errors = moment.table
    _, inputs = moment._unbounded("cgf")
    gamma = float(inputs["gamma"].value)
    at = int(np.abs(GAMMAS - gamma).argmin())
    draws = table[:, at]
    low = draws.mean() - 2 * draws.std() / math.sqrt(len(draws))
    absolute = 1e-6 * gamma * float(inputs["risk"].value)
    return single(low, absolute=absolute), single(draws.max() + 2 * errors[:, at].max(), absolute=absolute)


def spent(statements: list[Mapping[str, Any]]) -> float:
    """The δ that the statements of a record use up together, by the rules of the page."""
    bounds: dict[tuple[str, ...], float] = {}
    total = 0.0
    for s in statements:
        i, kind = s["inputs"], s["bound"]
        if kind in ("kl", "bernstein"):
            first, _, last = s["quantity"].rpartition(" ")
            event = first if last[0].isdigit() else s["quantity"], s["predictor"], s["prior"]
            bounds[event] = max(bounds.get(event, 0.0), i["delta_bound"])
            total += i["delta_draws"]
        elif kind in ("disintegrated", "counted rows", "test set", "progressive", "recursive"):
            total += i["delta_bound"] + i.get("delta_draws", 0.0)
    return total + sum(bounds.values())


def digest(record: Mapping[str, Any]) -> str:
    """BLAKE2b of the JSON text of everything else."""
    text = json.dumps({k: v for k, v in record.items() if k != "digest"}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
