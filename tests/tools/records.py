"""Random certificates: consistent ones of format 4, and ones with something changed."""

import json
import math
import random
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from pactrain import PactrainError
from pactrain.certification.statement import Statement

LABELS = ("certified", "estimated", "heuristic")  # from best to worst
PROVEN = ("kl", "bernstein", "disintegrated", "counted rows", "test set", "progressive", "recursive")
PREDICTORS = ("randomised predictor", "one drawn network", "mean network")


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def count(rng: random.Random, low: int = 1, high: int = 10**7) -> int:
    """A whole number of any size between the two."""
    return min(high, max(low, round(log_uniform(rng, low, high))))


def share(rng: random.Random) -> float:
    """A risk in [0, 1], often at an end of it."""
    return rng.choice([0.0, 1.0, rng.random(), log_uniform(rng, 1e-9, 1.0), 1 - log_uniform(rng, 1e-12, 1.0)])


def nats(rng: random.Random) -> float:
    """A KL between 0 and a million."""
    return rng.choice([0.0, log_uniform(rng, 1e-9, 1e6)])


def delta(rng: random.Random) -> float:
    """A probability of failure, tiny or large."""
    return rng.choice([0.05, log_uniform(rng, 1e-300, 0.999), rng.uniform(0.001, 0.999)])


def histogram(rng: random.Random) -> dict[str, Any]:
    """Zeros and ones, or values in a few bins of many; chunks of one size, or some that are smaller."""
    bins = rng.choice([1, 1, 2, 32, 1000])
    seen = sorted(rng.sample(range(bins + 1), rng.randint(1, min(bins + 1, 4))))
    counts = {i: count(rng, 1, 10**5) for i in seen}
    number = sum(counts.values())
    text = " ".join(f"{i}:{c}" for i, c in counts.items())
    return {"bins": bins, "counts": text, "values": rng.choice([number, number * rng.uniform(0.9, 1)])}


def measured_inputs(rng: random.Random) -> dict[str, Any]:
    """What bounds of measured risks have in common."""
    return {
        **histogram(rng), "delta_draws": delta(rng), "choices": rng.choice([1, 19, 32]), "kl": nats(rng),
        "prior_nats": nats(rng), "n": count(rng), "delta_bound": delta(rng),
    }  # fmt: skip


def kl_inputs(rng: random.Random) -> dict[str, Any]:
    return measured_inputs(rng) | {"scale": rng.choice([1.0, log_uniform(rng, 0.01, 1e3)])}


def bernstein_inputs(rng: random.Random) -> dict[str, Any]:
    return measured_inputs(rng) | {"limit": log_uniform(rng, 0.01, 1e3), "u": rng.uniform(0.01, 0.99)}


def disintegrated_inputs(rng: random.Random) -> dict[str, float]:
    ratio = rng.choice([-1, 1]) * nats(rng)
    return {"risk": share(rng), "log_ratio": ratio, "prior_nats": nats(rng), "n": count(rng), "delta_bound": delta(rng)}


def held_out_inputs(rng: random.Random) -> dict[str, float]:
    n = count(rng)
    errors = rng.choice([0, n, rng.randint(0, n), min(n, count(rng))])
    return {"errors": errors, "n": n, "delta_bound": delta(rng)}


def progressive_inputs(rng: random.Random, n: int | None = None) -> dict[str, Any]:
    n = n or count(rng)
    cut = rng.randint(0, n)
    blocks = [(m, rng.choice([0, m, rng.randint(0, m)])) for m in (count(rng), cut, n - cut) if m]
    return {"blocks": " ".join(f"{m}:{k}" for m, k in blocks), "n": n, "delta_bound": delta(rng)}


def recursive_inputs(rng: random.Random, n: int | None = None) -> dict[str, Any]:
    n = n or count(rng, 40)
    sizes = [n, *sorted(rng.sample(range(1, n), min(n - 1, rng.randint(0, 3))), reverse=True)]
    levels, parts = [], len(sizes) + rng.choice([0, 0, 2])
    for i, size in enumerate(sizes):
        found = histogram(rng)
        text = [found["counts"], *(_as_many(rng, found) for _ in range(2))][: 3 if i else 1]
        numbers = [str(size), repr(nats(rng)), repr(nats(rng)), repr(found["values"]), str(found["bins"])]
        levels.append(";".join([*numbers, *text]))
    return {
        "levels": " / ".join(levels), "parts": parts, "n": n, "delta_draws": delta(rng), "delta_bound": delta(rng),
    }  # fmt: skip


def _as_many(rng: random.Random, found: dict[str, Any]) -> str:
    """Another histogram of as many values, in the same bins."""
    number = sum(int(pair.split(":")[1]) for pair in found["counts"].split(" "))
    ones = rng.randint(0, number)
    return " ".join(f"{i}:{c}" for i, c in ((0, number - ones), (found["bins"], ones)) if c)


def unbounded_inputs(rng: random.Random) -> dict[str, float]:
    return {
        "risk": rng.uniform(-5, 20), "kl": nats(rng), "prior_nats": nats(rng), "gamma": log_uniform(rng, 1e-3, 1e5),
        "confidence_nats": rng.uniform(0.01, 50), "n": count(rng), "complexity": nats(rng),
    }  # fmt: skip


def objective_inputs(rng: random.Random) -> dict[str, float]:
    return {"risk": rng.uniform(-5, 20), "kl_term": nats(rng), "complexity": nats(rng)}


def eta_inputs(rng: random.Random) -> dict[str, float]:
    low = log_uniform(rng, 1e-3, 10)
    return {
        "objective": rng.uniform(-5, 20), "weights": count(rng, 1, 10**9), "mean_size": nats(rng),
        "mean_variance": nats(rng), "gamma_min": low, "gamma_max": low * log_uniform(rng, 1, 1e4), "n": count(rng),
        "largest_kl": nats(rng), "largest_k": nats(rng), "delta": delta(rng), "groups": count(rng, 1, 1000),
    }  # fmt: skip


INPUTS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "kl": kl_inputs,
    "bernstein": bernstein_inputs,
    "disintegrated": disintegrated_inputs,
    "counted rows": held_out_inputs,
    "test set": held_out_inputs,
    "progressive": progressive_inputs,
    "recursive": recursive_inputs,
    "unbounded (cgf)": unbounded_inputs,
    "unbounded (paper)": unbounded_inputs,
    "training objective": objective_inputs,
    "training objective + η": eta_inputs,
}


def seal(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the digest that fits it, computed as docs/record.md says."""
    rest = {key: value for key, value in record.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(", ", ": "), ensure_ascii=True)
    return rest | {"digest": blake2b(text.encode(), digest_size=16).hexdigest()}


def random_statement(rng: random.Random, n: int, budget: float, ceiling: str) -> dict[str, Any]:
    """A statement about n counted examples that spends no more than `budget` and carries a label that it may carry."""
    bound = rng.choice(list(INPUTS))
    inputs = INPUTS[bound](rng)
    if bound == "counted rows":
        inputs["errors"] = min(n, inputs["errors"])
    if bound == "progressive":
        inputs = progressive_inputs(rng, n)
    if bound == "recursive":
        inputs = recursive_inputs(rng, n)
    if bound != "test set" and not bound.startswith("training"):
        inputs["n"] = n
    inputs |= {key: budget * rng.uniform(0.4, 0.5) for key in ("delta_draws", "delta_bound") if key in inputs}
    if "confidence_nats" in inputs:
        inputs["confidence_nats"] = -math.log(budget)
    value = recompute(bound, inputs)
    constant = rng.choice([None, value * rng.uniform(0.5, 2)])
    allowed = list(LABELS[LABELS.index(ceiling) :]) if bound != "test set" else list(LABELS)
    if bound not in PROVEN or (constant is not None and value >= constant):
        allowed = [label for label in allowed if label != "certified"]
    return {
        "quantity": rng.choice(["0-1 error", "clipped loss", "loss", "share of errors above 4", "share of errors above 0.25"]), "predictor": rng.choice(PREDICTORS),
        "label": rng.choice(allowed), "bound": bound, "value": value, "inputs": inputs,
        "prior": rng.choice(["", "dyadic steps", "fixed in advance"]), "when": rng.choice(["end of training", "end of stage 1"]),
        "constant_answer": constant,
    }  # fmt: skip


def random_record(rng: random.Random) -> dict[str, Any]:
    """A consistent certificate."""
    n, total, size = count(rng), rng.choice([0.05, log_uniform(rng, 1e-12, 0.99)]), rng.randint(0, 3)
    caveats = [{"reason": "Grund: ü", "label": rng.choice(LABELS)} for _ in range(rng.choice([0, 0, 1, 2]))]
    ceiling = max((c["label"] for c in caveats), key=LABELS.index, default="certified")
    statements = [random_statement(rng, n, total / max(size, 1), ceiling) for _ in range(size)]
    return seal(
        {
            "format": 4, "statements": statements, "delta": total, "n": n, "loss": "cross-entropy", "seed": 0,
            "prior_source": "", "caveats": caveats, "notes": ["±"], "budget": {"all": total}, "measured": {},
            "hashes": {}, "versions": {},
        }
    )  # fmt: skip


def recompute(bound: str, inputs: dict[str, Any]) -> float:
    """The value that pactrain computes."""
    return Statement("", "", "heuristic", bound, 0.0, inputs).recompute()


def tampered(rng: random.Random, record: dict[str, Any]) -> dict[str, Any]:
    """A copy of the record in which one thing is changed, mostly with a digest that fits again."""
    changed: dict[str, Any] = json.loads(json.dumps(record))
    statements = changed["statements"]
    if statements and rng.random() < 0.7:
        tamper_statement(rng, rng.choice(statements))
    else:
        tamper_record(rng, changed)
    return seal(changed) if rng.random() < 0.9 else changed


def tamper_statement(rng: random.Random, s: dict[str, Any]) -> None:
    kind = rng.choice(["value", "input", "label", "bound", "constant", "delete", "type"])
    if kind == "value":
        s["value"] = s["value"] * rng.choice([0.5, 1 - 1e-6, 1 + 1e-6, 2]) if s["value"] > 1e-5 else s["value"] + 0.5
    elif kind == "input":
        tamper_input(rng, s)
    elif kind == "label":
        s["label"] = rng.choice([*LABELS, "proved"])
    elif kind == "bound":
        s["bound"] = rng.choice([*INPUTS, "magic"])
    elif kind == "constant":
        s["constant_answer"] = rng.choice([0.0, s["value"], s["value"] * 2, "low"])
    elif kind == "delete":
        holder = rng.choice([s, s["inputs"]])
        del holder[rng.choice(list(holder))]
    else:
        holder = rng.choice([s, s["inputs"]])
        holder[rng.choice(list(holder))] = rng.choice(["0.1", None, [], {}, True])


def tamper_input(rng: random.Random, s: dict[str, Any]) -> None:
    """Change one input so that the value changes by much more than the last digits, or not at all."""
    name = rng.choice(list(s["inputs"]))
    old = s["inputs"][name]
    if isinstance(old, str):  # a histogram, or blocks of counted rows
        s["inputs"][name] = rng.choice(
            ["", "0:0", f"{old} 1:1", f"{old} 2000:1", "00:1", "0:5\n", old.replace(":", ";")]
        )
        return
    s["inputs"][name] = rng.choice([0, -old, old + 1, old * 2, old * 0.5, 1e300])
    try:
        again = recompute(s["bound"], s["inputs"])
    except PactrainError:
        return
    if 0 < abs(again - s["value"]) <= 1e-6 * abs(again) + 1e-6:
        s["inputs"][name] = old
        s["value"] += 1.0


def tamper_record(rng: random.Random, record: dict[str, Any]) -> None:
    kind = rng.choice(["delta", "n", "caveat", "delete", "extra", "type", "digest"])
    if kind == "delta":
        record["delta"] = rng.choice([0, 1, -0.1, 2, record["delta"] / 2, record["delta"] / 1e3])
    elif kind == "n":
        record["n"] += 1
    elif kind == "caveat":
        record["caveats"].append({"reason": "", "label": rng.choice([*LABELS, "proved"])})
    elif kind == "delete":
        del record[rng.choice(list(record))]
    elif kind == "extra":
        record["remark"] = "harmless"
    elif kind == "type":
        name = rng.choice(["delta", "n", "statements", "caveats", "format", "digest"])
        record[name] = rng.choice(["0.1", None, 7, {}, [1], True])
    else:
        record["seed"] += 1  # seals itself again in nine cases of ten, and is then a consistent record
