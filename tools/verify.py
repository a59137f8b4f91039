#!/usr/bin/env python3
"""Check the arithmetic of pactrain certificates with nothing but Python's standard library.

    python tools/verify.py certificate.json [more.json ...]

It shares no code with pactrain and was written from docs/record.md, to be read.

A stored value is accepted only if it is *proved* not to be below the number that its formula gives. No formula has to be
inverted for that: kl(q‖p) grows with p and P(Binomial(n, p) ≤ k) falls with p, so it is enough to evaluate them at the
stored value. This is done with 60 digits; every rounding error is far below MARGIN, and MARGIN always counts against the
certificate. A value more than 10⁻⁹ above the number is refused too: it does not come from these inputs.

Exit code: 0 if all files are consistent, 1 if one violates a rule, 2 if one is not a certificate at all.
"""

import itertools
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from hashlib import blake2b
from typing import Any

DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
MARGIN = Decimal("1e-40")
RELATIVE, ABSOLUTE = Decimal("1e-9"), Decimal("1e-12")
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
FIELDS = "format statements delta n loss seed prior_source caveats notes budget measured hashes versions digest"
KINDS = {Decimal: "a finite number", str: "a text", list: "a list"}
LABELS = ("heuristic", "estimated", "certified")  # from worst to best
Inputs = dict[str, Any]  # decimals, and the text of a histogram, of blocks or of levels


# The formulas. `above(p)` functions return True only if p is certainly not below the true value.


def kl(q: Decimal, p: Decimal) -> Decimal:
    """kl(q‖p) = q ln(q/p) + (1 − q) ln((1 − q)/(1 − p)), for 0 ≤ q ≤ p < 1; its terms are below 1 and 140."""
    return (q * (q / p).ln() if q > 0 else 0) + (1 - q) * ((1 - q) / (1 - p)).ln()


def above_inverse_kl(p: Decimal, q: Decimal, c: Decimal) -> bool:
    """True if p ≥ kl⁻¹(q, c), the largest p in [q, 1] with kl(q‖p) ≤ c."""
    if p >= 1 or p < q:
        return p >= 1
    return c <= 0 or (p > 0 and kl(q, p) >= c + MARGIN)


def smallest_above(above: Callable[[Decimal], bool], width: Decimal) -> Decimal:
    """Upper end of an interval of this width around the smallest p in [0, 1] with above(p), by bisection."""
    low, high = Decimal(0), Decimal(1)
    while high - low > width:
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return high


@lru_cache
def ln_xi(n: Decimal) -> Decimal:
    """ln ξ(n), ξ(n) = Σ_k n!/((n − k)! nᵏ), which is Σ_k C(n, k) (k/n)ᵏ (1 − k/n)ⁿ⁻ᵏ."""
    term = total = Decimal(1)
    for k in range(1, int(n) + 1):
        total += term
        term *= 1 - k / n
        if term * n < MARGIN / 1000 * k:  # all further terms: at most a geometric series
            break
    return total.ln()


def wealth(m: Any, values: list[tuple[Any, int]], stakes: list[Any]) -> Any:
    """Mean over stakes g of Π (1 − g (x − m)/(1 − m)), in the numbers that are given."""
    return sum(math.prod((1 - g * (x - m) / (1 - m)) ** count for x, count in values) for g in stakes) / len(stakes)


def by_betting(values: list[tuple[Decimal, int]], delta: Decimal) -> Decimal:
    """The smallest mean m < 1 at which the wealth is 1/δ (1 if there is none), never too small, and by less than 10⁻¹³ too large."""
    stakes = [1 / (1 + (Decimal(3 * i) / 4 - 4).exp()) for i in range(15)]
    mean = sum((x * count for x, count in values), Decimal(0)) / sum(count for _, count in values)
    low, high = mean, Decimal(1)
    while high - low > Decimal("1e-14") * high:
        middle = (low + high) / 2
        low, high = (low, middle) if wealth(middle, values, stakes) * delta >= 1 + MARGIN else (middle, high)
    return high


def pairs_of(text: str) -> list[tuple[int, int]]:
    """Numbers of bins with their counts, or of rows with their errors."""
    pairs = (pair.split(":") for pair in text.split(" "))
    return [(int(number), int(count)) for number, count in pairs]


@lru_cache
def measured_risk(bins: Decimal, counts: str, values: Decimal, delta: Decimal) -> Decimal:
    """What the histogram of measured values allows a risk to be at δ; chunks smaller than the largest make it larger than the mean."""
    pairs = pairs_of(counts)
    number = sum(count for _, count in pairs)
    if bins == 1:
        mean = Decimal(dict(pairs).get(1, 0)) / number
        bound = smallest_above(lambda p: above_inverse_kl(p, mean, (1 / delta).ln() / number), Decimal("1e-30"))
    else:
        bound = by_betting([(i / bins, count) for i, count in pairs], delta)
    return min(Decimal(1), bound * number / values)


def risk_and_cost(x: Inputs) -> tuple[Decimal, Decimal]:
    """The risk on the counted examples, and kl + prior_nats + ln(choices/delta_bound)."""
    risk = measured_risk(x["bins"], x["counts"], x["values"], x["delta_draws"] / x["choices"])
    return risk, x["kl"] + x["prior_nats"] + (x["choices"] / x["delta_bound"]).ln()


def kl_bound(x: Inputs) -> Callable[[Decimal], bool]:
    """`kl`: scale · kl⁻¹( risk, (kl + prior_nats + ln(ξ(n) choices/delta_bound))/n )."""
    risk, cost = risk_and_cost(x)
    return lambda value: above_inverse_kl(value / x["scale"], risk, (cost + ln_xi(x["n"])) / x["n"])


def bernstein_bound(x: Inputs) -> Callable[[Decimal], bool]:
    """`bernstein`: limit · ( −ln(1 − u)/u · risk + (kl + prior_nats + ln(choices/delta_bound))/(u n) )."""
    risk, cost = risk_and_cost(x)
    return lambda value: value >= x["limit"] * (-(1 - x["u"]).ln() / x["u"] * risk + cost / (x["u"] * x["n"]))


def disintegrated_bound(x: Inputs) -> Callable[[Decimal], bool]:
    """`disintegrated`: kl⁻¹( risk, max(0, log_ratio + prior_nats + ln(ξ(n)/delta_bound))/n )."""
    nats = x["log_ratio"] + x["prior_nats"] + ln_xi(x["n"]) - x["delta_bound"].ln()
    return lambda value: above_inverse_kl(value, x["risk"], max(Decimal(0), nats) / x["n"])


def ln_factorial(m: int) -> Decimal:
    """ln m!: exact for small m, otherwise Stirling's series, whose error is below its first omitted term (< 10⁻⁵⁰)."""
    if m < 1000:
        return Decimal(math.factorial(m)).ln()
    bernoulli = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510))
    x = Decimal(m)
    series = sum(Decimal(a) / (b * 2 * j * (2 * j - 1) * x ** (2 * j - 1)) for j, (a, b) in enumerate(bernoulli, 1))
    return x * x.ln() - x + (2 * PI * x).ln() / 2 + series


def binomial_cdf(k: int, n: int, p: Decimal) -> Decimal:
    """P(Binomial(n, p) ≤ k) for 0 ≤ k < n and 0 < p < 1, to a relative error far below MARGIN."""
    if k > n * p:  # the other tail is the small one; k is at least the median, so the difference is at least 1/2
        return 1 - binomial_cdf(n - k - 1, n, 1 - p)
    ln_comb = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
    last = (ln_comb + k * p.ln() + (n - k) * (1 - p).ln()).exp()  # P(exactly k), the largest of the terms
    odds, total, term = (1 - p) / p, Decimal(1), Decimal(1)
    for i in range(k, 0, -1):
        ratio = odds * i / (n - i + 1)  # P(exactly i − 1) / P(exactly i) < 1, and smaller for smaller i
        term *= ratio
        total += term
        if term * ratio < MARGIN / 1000 * (1 - ratio):  # all further terms: at most a geometric series
            break
    return last * total


def held_out_bound(x: Inputs) -> Callable[[Decimal], bool]:
    """`counted rows`, `test set`: the p with P(Binomial(n, p) ≤ errors) = delta_bound, and 1 if errors = n (Clopper and Pearson)."""
    k, n = int(x["errors"]), int(x["n"])
    return lambda p: p >= 1 or (p > 0 and k < n and binomial_cdf(k, n, p) * (1 + MARGIN) <= x["delta_bound"])


def progressive_bound(x: Inputs) -> Callable[[Decimal], bool]:
    """`progressive`: (1 − exp(−(λ Σ errors + ln(1/delta_bound))/n)) / (1 − e^−λ), λ from the errors of the first block."""
    blocks = pairs_of(x["blocks"])
    confidence = (1 / x["delta_bound"]).ln()
    rate = (2 * confidence / (3 * (blocks[0][1] + 1))).sqrt()
    errors = sum(k for _, k in blocks[1:])
    truth = (1 - (-(rate * errors + confidence) / x["n"]).exp()) / (1 - (-rate).exp())
    return lambda value: value >= min(Decimal(1), truth * (1 + MARGIN))


def levels_of(text: str) -> list[tuple[list[Decimal], list[str]]]:
    """Each level's n, kl, nats, values and bins, and its histograms."""
    parts = (level.split(";") for level in text.split(" / "))
    return [([Decimal(number) for number in part[:5]], part[5:]) for part in parts]


def recursive_bound(x: Inputs) -> Callable[[Decimal], bool]:
    """`recursive`: B_1 = kl⁻¹(risk, …), then B_t = B_(t−1)/2 − 1/2 + Σ over three histograms of kl⁻¹(risk, …)/2, between 0 and 1."""
    bound = Decimal(0)
    for (n, kl_, nats, values, bins), histograms in levels_of(x["levels"]):
        events, terms = x["parts"] * len(histograms), []
        cost = (kl_ + nats + ln_xi(n) + (events / x["delta_bound"]).ln()) / n
        for counts in histograms:
            risk = measured_risk(bins, counts, values, x["delta_draws"] / events)
            terms.append(smallest_above(lambda p, q=risk, c=cost: above_inverse_kl(p, q, c), Decimal("1e-30")))  # type: ignore[misc]
        bound = terms[0] if len(terms) == 1 else (bound - 1 + sum(terms)) / 2
        bound = min(Decimal(1), max(Decimal(0), bound))
    return lambda value: value >= min(Decimal(1), bound * (1 + MARGIN))


def unbounded(x: Inputs) -> Decimal:
    """`unbounded (cgf)`, `unbounded (paper)`."""
    nats: Decimal = x["kl"] + x["prior_nats"] + x["confidence_nats"]
    return Decimal(x["risk"] + nats / (x["gamma"] * x["n"]) + x["complexity"])


def objective_with_eta(x: Inputs) -> Decimal:
    """`training objective + η`, with the letters of the page."""
    a, b, d, m, t = Decimal(12), Decimal(2), x["weights"], x["mean_size"], x["mean_variance"]
    low, high, n, groups = x["gamma_min"], x["gamma_max"], x["n"], x["groups"]
    l1 = max(d, a.exp() * (2 * d.sqrt() * m + d * t)) / 2
    l2 = (2 * d * m**2 * (2 * a).exp() + d * (a + b) / 2) / low**2
    c = 1 / (low * n) + high
    big_b = (x["largest_kl"] + (1 / x["delta"]).ln()) / (n * low**2) + x["largest_k"]
    delta = max(a + b, 2 * (high - low))
    inside: Decimal = 2 * (c * (l1 + l2) + big_b) * delta * low * n / groups
    return Decimal(x["objective"] + groups / (low * n) * (1 + inside.ln()))


MEASURED = {"kl": kl_bound, "bernstein": bernstein_bound}
PROVED = MEASURED | {"disintegrated": disintegrated_bound, "counted rows": held_out_bound, "test set": held_out_bound}
PROVED |= {"progressive": progressive_bound, "recursive": recursive_bound}
SUMS: dict[str, Callable[[Inputs], Decimal]] = {
    "unbounded (cgf)": unbounded,
    "unbounded (paper)": unbounded,
    "training objective": lambda x: x["risk"] + x["kl_term"] + x["complexity"],
    "training objective + η": objective_with_eta,
}
NAMES = {  # the inputs of each formula
    "kl": "bins counts values delta_draws choices kl prior_nats n delta_bound scale",
    "bernstein": "bins counts values delta_draws choices kl prior_nats n delta_bound limit u",
    "disintegrated": "risk log_ratio prior_nats n delta_bound",
    "counted rows": "errors n delta_bound",
    "test set": "errors n delta_bound",
    "progressive": "blocks n delta_bound",
    "recursive": "levels parts n delta_draws delta_bound",
    "unbounded (cgf)": "risk kl prior_nats confidence_nats gamma n complexity",
    "unbounded (paper)": "risk kl prior_nats confidence_nats gamma n complexity",
    "training objective": "risk kl_term complexity",
    "training objective + η": "objective weights mean_size mean_variance gamma_min gamma_max n largest_kl largest_k delta groups",
}
RANGES: dict[str, tuple[str, Callable[[Decimal], bool]]] = {  # what the inputs with these names must be
    "a whole number": ("n errors weights groups bins choices parts", lambda x: x == x.to_integral_value()),
    "positive": ("n values scale limit gamma gamma_min gamma_max weights groups confidence_nats", lambda x: x > 0),
    "at least 1": ("bins choices parts", lambda x: x >= 1),
    "at least 0": ("kl prior_nats errors mean_size mean_variance largest_kl largest_k", lambda x: x >= 0),
    "strictly between 0 and 1": ("u delta delta_draws delta_bound", lambda x: 0 < x < 1),
    "at most 10^10 (beyond it, 60 digits are too few here)": ("n", lambda x: x <= 10**10),
}


# The rules, numbered as on the page. Each function returns the violations, one line each.


def out_of_range(bound: str, x: Inputs) -> list[str]:
    """Rule 5: inputs for which the formula means nothing."""
    ranges = [(name, rule, holds) for rule, (names, holds) in RANGES.items() for name in names.split() if name in x]
    wrong = [(name, rule) for name, rule, holds in ranges if not holds(x[name])]
    if bound == "disintegrated" and not 0 <= x["risk"] <= 1:  # elsewhere the risk is one of an unbounded loss
        wrong.append(("risk", "between 0 and 1"))
    if bound in ("counted rows", "test set") and x["errors"] > x["n"]:
        wrong.append(("errors", "at most n"))
    if bound in MEASURED:
        pairs = pairs_of(x["counts"])
        if max(i for i, _ in pairs) > x["bins"] or x["values"] > sum(count for _, count in pairs):
            wrong.append(("values", "no more than there are counts, in bins up to the last"))
    if bound == "progressive":
        first, *counted = pairs_of(x["blocks"])
        if sum(rows for rows, _ in counted) != x["n"] or any(k > rows or rows < 1 for rows, k in (first, *counted)):
            wrong.append(("n", "the sum of all blocks but the first, none of which has more errors than rows"))
    if bound == "recursive":
        wrong += out_of_range_levels(x)
    return [f"rule 5: input {name} = {float(x[name])!r} must be {rule}" for name, rule in wrong]


def out_of_range_levels(x: Inputs) -> list[tuple[str, str]]:
    """Inputs of `recursive` for which its formula means nothing."""
    levels = levels_of(x["levels"])
    numbers = [n for (n, *_), _ in levels]
    wrong = []
    if numbers[0] != x["n"] or any(b >= a for a, b in itertools.pairwise(numbers)) or numbers[-1] < 1:
        wrong.append(("n", "that of the first level, and levels must count fewer and fewer"))
    if len(levels) > x["parts"] or [len(h) for _, h in levels] != [1] + (len(levels) - 1) * [3]:
        wrong.append(
            ("parts", "at least the number of levels, of which the first has one histogram and all others three")
        )
    for (_, _, _, values, bins), histograms in levels:
        found = [pairs_of(counts) for counts in histograms]
        if any(not 0 < values <= sum(count for _, count in h) or max(i for i, _ in h) > bins for h in found):
            wrong.append(
                ("parts", "that of levels whose values are positive, and no more than there are counts in the bins")
            )
    return wrong


def wrong_value(bound: str, value: Decimal, x: Inputs) -> list[str]:
    """Rule 1: the value follows from its inputs; that of a bound is not below the number that the formula gives."""
    if bound in SUMS:
        truth = SUMS[bound](x)
        close = abs(value - truth) <= RELATIVE * abs(truth) + ABSOLUTE
        return [] if close else [f"rule 1: value {float(value)!r}, but its formula gives {truth:.12g}"]
    above = PROVED[bound](x)
    if above(value) and not above((value - ABSOLUTE) / (1 + RELATIVE)):
        return []
    scale = x.get("scale", 10 * x.get("limit", Decimal("0.1")))
    truth = scale * smallest_above(lambda p: above(scale * p), Decimal("1e-12"))  # for the message only
    return [f"rule 1: value {float(value)!r} is {'above' if above(value) else 'below'} its formula's, {truth:.10g}"]


def statement_violations(s: dict[str, Any], n: Decimal, ceiling: str) -> list[str]:
    """Rules 1, 2, 3 and 5 for one statement; `ceiling` is the best label that the caveats allow."""
    bound, label, value, x = s["bound"], s["label"], s["value"], s["inputs"]
    lines = out_of_range(bound, x) or wrong_value(bound, value, x)
    if label == "certified" and bound not in PROVED:
        lines.append(f"rule 2: certified by {bound!r}, which proves nothing")
    if label == "certified" and s["constant_answer"] is not None and value >= s["constant_answer"]:
        lines.append("rule 2: certified, but no better than the best constant answer")
    if bound != "test set" and LABELS.index(label) > LABELS.index(ceiling):
        lines.append(f"rule 2: {label}, but a caveat allows no more than {ceiling}")
    if bound != "test set" and not bound.startswith("training") and x["n"] != n:
        lines.append(f"rule 3: n is {float(x['n'])!r}, but {float(n)!r} in the record")
    return [f"{line} [{s['quantity']!r}, {s['predictor']!r}, {bound!r}]" for line in lines]


def delta_spent(statements: list[dict[str, Any]]) -> Decimal:
    """Rule 4: the sum over all events that may fail."""
    events: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    draws = Decimal(0)
    for s in statements:
        bound, x = s["bound"], s["inputs"]
        if bound in MEASURED:
            event = (bound, re.sub(r" [-+.e0-9]+$", "", s["quantity"]), s["predictor"], s["prior"])
            events[event] = max(events[event], x["delta_bound"])
            draws += x["delta_draws"]
        elif bound in PROVED:
            draws += x["delta_bound"] + x.get("delta_draws", Decimal(0))
    return sum(events.values(), draws)


def violations(record: dict[str, Any]) -> list[str]:
    """Every rule that the record violates, one line each."""
    statements, delta, n, ceiling = read_record(record)
    rest = {key: value for key, value in record.items() if key != "digest"}
    digest = blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16).hexdigest()
    lines = [] if digest == record["digest"] else ["rule 1: the digest does not fit: the file was changed or damaged"]
    for s in statements:
        lines += statement_violations(s, n, ceiling)
    if not 0 < delta < 1:
        lines.append("rule 4: delta must lie strictly between 0 and 1")
    if (spent := delta_spent(statements)) > delta * (1 + RELATIVE):  # the shares of delta are rounded
        lines.append(f"rule 4: the statements spend {spent:.9g}, more than delta = {float(delta)!r}")
    return lines


# Reading. Every type is checked before a rule looks at it.


def expect(condition: bool, message: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ValueError(message)


def fields(holder: Any, what: str, names: str) -> dict[str, Any]:
    """A copy of the object, if it has exactly these fields."""
    expect(isinstance(holder, dict) and holder.keys() == set(names.split()), f"{what} has other fields than {names}")
    return dict(holder)


def typed(value: Any, name: str, kind: type) -> Any:
    """The value itself, if it is of the kind; a number must be finite, and becomes an exact decimal."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    expect(number if kind is Decimal else isinstance(value, kind), f"{name!r} is not {KINDS[kind]}")
    return Decimal(value) if kind is Decimal else value


def read_statement(raw: Any) -> dict[str, Any]:
    """One statement with its numbers as decimals."""
    s = fields(raw, "a statement", "quantity predictor label bound value inputs prior when constant_answer")
    for name in ("quantity", "predictor", "label", "bound", "prior", "when"):
        typed(s[name], name, str)
    expect(s["label"] in LABELS and s["bound"] in NAMES, f"unknown label {s['label']!r} or bound {s['bound']!r}")
    inputs = fields(s["inputs"], f"inputs of {s['bound']!r}", NAMES[s["bound"]])
    texts = {name: read(inputs[name]) for name, read in TEXTS.items() if name in inputs}
    s["inputs"] = {name: texts.get(name) or typed(value, name, Decimal) for name, value in inputs.items()}
    s["value"] = typed(s["value"], "value", Decimal)
    s["constant_answer"] = None if s["constant_answer"] is None else typed(s["constant_answer"], "a constant", Decimal)
    return s


def read_counts(text: Any) -> str:
    """A histogram, "0:490 3:10": numbers of bins in increasing order, each with its count."""
    typed(text, "counts", str)
    pair = r"(0|[1-9][0-9]{0,8}):[1-9][0-9]{0,14}"
    expect(re.fullmatch(f"{pair}( {pair})*", text) is not None, "counts are no histogram")
    bins = [int(part.split(":")[0]) for part in text.split(" ")]
    expect(bins == sorted(set(bins)), "counts are no histogram")
    return str(text)


def read_blocks(text: Any) -> str:
    """Blocks, "90:1 45:0": numbers of rows, each with its errors."""
    typed(text, "blocks", str)
    pair = r"[1-9][0-9]{0,14}:(0|[1-9][0-9]{0,14})"
    expect(re.fullmatch(f"{pair}( {pair})*", text) is not None, "blocks are no numbers of rows and errors")
    return str(text)


def read_levels(text: Any) -> str:
    """Levels, "8;0.5;0.0;8.0;1;0:7 1:1 / …": rows, nats of divergence and of price, values, bins, histograms."""
    typed(text, "levels", str)
    number, names = r"[0-9]{1,300}(\.[0-9]{1,300})?(e[-+][0-9]{1,2})?", "levels are not written as they should be"
    level = rf"[1-9][0-9]{{0,9}};{number};{number};{number};[1-9][0-9]{{0,8}};[0-9: ;]+"
    for part in text.split(" / "):
        expect(re.fullmatch(level, part) is not None, names)
        for counts in part.split(";")[5:]:
            read_counts(counts)
    return str(text)


TEXTS = {"counts": read_counts, "blocks": read_blocks, "levels": read_levels}


def read_record(record: Any) -> tuple[list[dict[str, Any]], Decimal, Decimal, str]:
    """Statements, delta, n, and the best label that all caveats allow."""
    expect(isinstance(record, dict) and record.get("format") == 4, "it is not an object of format 4")
    fields(record, "the record", FIELDS)
    caveats = [fields(caveat, "a caveat", "reason label") for caveat in typed(record["caveats"], "caveats", list)]
    expect(all(caveat["label"] in LABELS for caveat in caveats), "a caveat has an unknown label")
    ceiling = min((caveat["label"] for caveat in caveats), key=LABELS.index, default="certified")
    statements = [read_statement(raw) for raw in typed(record["statements"], "statements", list)]
    return statements, typed(record["delta"], "delta", Decimal), typed(record["n"], "n", Decimal), ceiling


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Readers disagree on which of two equal keys counts, so there must not be two."""
    expect(len(dict(pairs)) == len(pairs), "a key occurs twice in one object")
    return dict(pairs)


def check(path: str) -> tuple[int, list[str]]:
    """Exit code and lines for one file."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file, object_pairs_hook=unique, parse_constant=lambda nan: expect(False, nan))
        with localcontext(DIGITS):
            lines = violations(record)
    except RecursionError:
        return 2, ["not a certificate: nested too deeply"]
    except (OSError, ValueError) as error:  # ValueError: also not JSON, not UTF-8, a number of thousands of digits
        return 2, [f"not a certificate: {error}"]
    fine = "consistent. Only arithmetic was checked, not where the inputs come from: `pactrain verify RUN` does that."
    return (1, lines) if lines else (0, [fine])


def main(paths: list[str]) -> int:
    """Print what was found; return the largest exit code."""
    results = [(path, *check(path)) for path in paths]
    for path, _, lines in results or [("usage", 2, ["python tools/verify.py certificate.json [more.json ...]"])]:
        for line in lines:  # in ASCII, because the file's strings may hold anything
            print(f"{path}: {line}".encode("ascii", "backslashreplace").decode())
    return max((code for _, code, _ in results), default=2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
