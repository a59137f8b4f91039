"""The second verifier: known answers, agreement with pactrain, files that nobody meant well with."""

import importlib.util
import json
import random
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest

from pactrain import Certificate, PactrainError
from pactrain.bounds.betting import Histogram, mean_bound
from tests.tools.records import INPUTS, PROVEN, random_record, recompute, seal, tampered

SCRIPT = Path(__file__).parents[2] / "tools" / "verify.py"
_spec = importlib.util.spec_from_file_location("verify", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
verify = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(verify)


def exactly(inputs: dict[str, Any]) -> dict[str, Any]:
    """Numbers as decimals; a histogram stays a text."""
    return {name: x if isinstance(x, str) else Decimal(x) for name, x in inputs.items()}


def verdict(bound: str, value: float, inputs: dict[str, Any]) -> list[str]:
    """What the second verifier finds wrong with one value."""
    with localcontext(verify.DIGITS):
        exact = exactly(inputs)
        found: list[str] = verify.out_of_range(bound, exact) or verify.wrong_value(bound, Decimal(value), exact)
    return found


def true_value(bound: str, inputs: dict[str, Any]) -> float:
    """The smallest value that the second verifier accepts."""
    with localcontext(verify.DIGITS):
        above = verify.PROVED[bound](exactly(inputs))
        return float(verify.smallest_above(above, Decimal("1e-12")))


@pytest.mark.parametrize(
    ("risk", "kl", "n", "delta", "expected"),
    [(0.02, 5000, 50000, 0.025, 0.151003), (0.2, 500, 10000, 0.05, 0.344834), (0.0005, 20, 1000, 0.05, 0.029256)],
)
def test_published_values_of_the_kl_bound(risk: float, kl: float, n: int, delta: float, expected: float) -> None:
    with localcontext(verify.DIGITS):
        share = (
            delta * float(verify.ln_xi(Decimal(n)).exp()) / (2 * n**0.5)
        )  # they were published with 2√n instead of ξ(n)
    inputs = {"risk": risk, "log_ratio": kl, "prior_nats": 0.0, "n": n, "delta_bound": share}
    assert true_value("disintegrated", inputs) == pytest.approx(expected, abs=5e-7)
    many = {
        "bins": 1,
        "counts": f"0:{round((1 - risk) * 10**14)} 1:{round(risk * 10**14)}",
        "values": 10**14,
        "choices": 1,
    }
    measured = many | {"delta_draws": 0.5, "kl": kl, "prior_nats": 0.0, "scale": 1.0, "n": n, "delta_bound": share}
    assert true_value("kl", measured) == pytest.approx(expected, abs=1e-6)


def test_means_by_betting() -> None:
    """Against values from 40 digits elsewhere: 500 chunks of 32, and the same with chunks that are smaller."""
    counts = {0: 262, 1: 170, 2: 54, 3: 11, 4: 3}
    text = " ".join(f"{i}:{c}" for i, c in counts.items())
    with localcontext(verify.DIGITS):
        found = verify.measured_risk(Decimal(32), text, Decimal(500), Decimal("0.002"))
        assert float(found) == pytest.approx(mean_bound(Histogram(32, counts), 0.002), rel=1e-11)
        assert verify.measured_risk(Decimal(32), text, Decimal(250), Decimal("0.002")) == 2 * found
        assert float(verify.ln_xi(Decimal(2)).exp()) == 2.5


def test_other_known_values() -> None:
    with localcontext(verify.DIGITS):
        assert not verify.above_inverse_kl(Decimal("0.046515"), Decimal("0.02"), Decimal("0.01"))
        assert verify.above_inverse_kl(Decimal("0.046525"), Decimal("0.02"), Decimal("0.01"))
        assert float(verify.binomial_cdf(5, 10, Decimal("0.5"))) == 638 / 1024
        exact = Decimal(1)  # ln 2000! as a sum of logarithms
        for k in range(2, 2001):
            exact *= k
        assert abs(verify.ln_factorial(2000) - exact.ln()) < Decimal("1e-50")
    held_out = {"errors": 3, "n": 100, "delta_bound": 0.05}
    assert true_value("test set", held_out) == pytest.approx(0.0757108, abs=5e-8)
    assert true_value("test set", {"errors": 0, "n": 7, "delta_bound": 0.1}) == pytest.approx(1 - 0.1 ** (1 / 7))
    assert true_value("test set", {"errors": 7, "n": 7, "delta_bound": 0.1}) == 1
    sums = {
        "risk": 0.5,
        "kl": 10.0,
        "prior_nats": 2.0,
        "confidence_nats": 3.0,
        "gamma": 5.0,
        "n": 100,
        "complexity": 0.25,
    }
    assert not verdict("unbounded (cgf)", 0.78, sums)
    assert verdict("unbounded (cgf)", 0.78 + 1e-8, sums)
    assert verdict("unbounded (cgf)", 0.78, sums | {"kl": -1.0})


@pytest.mark.parametrize("bound", INPUTS)
def test_values_of_the_product_are_accepted_and_others_are_not(bound: str) -> None:
    rng = random.Random(bound)
    for _ in range(50):
        inputs = INPUTS[bound](rng)
        value = recompute(bound, inputs)
        assert not verdict(bound, value, inputs), inputs
        if abs(value) > 1e-5:
            assert verdict(bound, value - 1e-6 * abs(value), inputs), inputs
            assert verdict(bound, value + 1e-6 * abs(value), inputs), inputs
        if bound in PROVEN and 1e-5 < value < 1:  # a hair, but more than pactrain rounds up by
            assert "below" in verdict(bound, value * (1 - 1e-9), inputs)[0], inputs


@pytest.mark.slow
@pytest.mark.parametrize("bound", PROVEN)
def test_no_bound_of_the_product_is_rounded_down(bound: str) -> None:
    rng = random.Random(f"many {bound}")
    for _ in range(3000):
        inputs = INPUTS[bound](rng)
        assert not verdict(bound, recompute(bound, inputs), inputs), inputs


def accepted_by_the_product(record: dict[str, Any]) -> bool:
    """True if pactrain calls the record consistent."""
    try:
        return Certificate.from_dict(record).recheck()
    except PactrainError:
        return False


def agreement(seed: int, size: int) -> None:
    """Both verifiers give the same verdict on random records, of which every second one is tampered with."""
    rng, refused = random.Random(seed), 0
    for index in range(size):
        record = random_record(rng)
        if index % 2:
            record = tampered(rng, record)
        found = findings(record)
        assert accepted_by_the_product(record) == (not found), (found, record)
        assert index % 2 or not found, (found, record)
        refused += bool(found)
    assert refused > 0.3 * size


def findings(record: dict[str, Any]) -> list[str]:
    """What the second verifier finds wrong with a record."""
    try:
        with localcontext(verify.DIGITS):
            return list(verify.violations(record))
    except ValueError as error:
        return [str(error)]


def test_agrees_with_the_product() -> None:
    agreement(seed=1, size=1000)


@pytest.mark.slow
def test_agrees_with_the_product_on_ten_thousand_records() -> None:
    agreement(seed=2, size=10_000)


HELD_OUT = {"errors": 3, "n": 100, "delta_bound": 0.05}


def small_record() -> dict[str, Any]:
    """A consistent certificate with one statement."""
    statement = {
        "quantity": "0-1 error", "predictor": "mean network", "label": "certified", "bound": "test set",
        "value": recompute("test set", HELD_OUT), "inputs": dict(HELD_OUT), "prior": "", "when": "end of training",
        "constant_answer": 0.5,
    }  # fmt: skip
    return seal(
        {
            "format": 4, "statements": [statement], "delta": 0.05, "n": 60, "loss": "", "seed": 0, "prior_source": "",
            "caveats": [], "notes": [], "budget": {}, "measured": {}, "hashes": {}, "versions": {},
        }
    )  # fmt: skip


def run(*paths: Path) -> tuple[int, str]:
    """Exit code and output of the script, in a Python that sees no installed package."""
    done = subprocess.run([sys.executable, "-I", "-S", str(SCRIPT), *map(str, paths)], capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


def test_the_script_names_what_it_checked_and_each_violated_rule(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(small_record()))
    code, printed = run(good)
    assert code == 0
    assert "Only arithmetic was checked" in printed

    record = small_record()
    record["statements"][0]["value"] = 0.01
    record["statements"][0]["constant_answer"] = 0.001
    record["statements"].append(record["statements"][0] | {"bound": "disintegrated", "value": 0.2, "inputs": {
        "risk": 2.0, "log_ratio": 0.0, "prior_nats": -1.0, "n": 61, "delta_bound": 0.01}})  # fmt: skip
    record["caveats"] = [{"reason": "", "label": "heuristic"}]
    bad.write_text(json.dumps(record))
    code, printed = run(good, bad)
    assert code == 1
    expected = ["digest", "0.0757", "constant answer", "risk", "prior_nats", "caveat", "61", "spend 0.06"]
    assert [word for word in expected if word not in printed] == []
    assert len(printed.splitlines()) == 1 + 1 + 2 + 5 + 1
    assert run() == (2, "usage: python tools/verify.py certificate.json [more.json ...]\n")


@pytest.mark.parametrize(
    "text",
    [
        "", "no JSON", "[]", "{}", "null", "3", "[" * 100_000, '{"a":' * 100_000, '{"format": 4}', "\ud800", "1" * 5000,
        json.dumps(small_record()).replace("0.5", "NaN"), json.dumps(small_record()).replace("0.5", "1e999"),
        json.dumps(small_record()).replace("0.5", "true"), json.dumps(small_record()).replace('"seed"', '"delta"'),
        json.dumps(small_record()).replace("certified", "\\u00fcber\\n\\ud800"),
        json.dumps(small_record() | {"format": 3}), json.dumps(small_record() | {"statements": [7]}),
        json.dumps(small_record() | {"caveats": [{"label": []}]}), json.dumps(small_record() | {"digest": 5}),
    ],
)  # fmt: skip
def test_what_is_no_certificate_gets_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    code, printed = run(path)
    if text.endswith('"digest": 5}'):  # a digest of another type is just one that does not fit
        assert code == 1
    else:
        assert code == 2
        assert "not a certificate" in printed
    assert len(printed.splitlines()) == 1


def test_a_missing_file_and_hostile_numbers_end_soon(tmp_path: Path) -> None:
    assert run(tmp_path / "none.json")[0] == 2
    path = tmp_path / "certificate.json"
    for hostile in (
        {"n": 10**200, "errors": 10**199},
        {"n": 1e-300},
        {"n": -5},
        {"errors": 0.5},
        {"delta_bound": 1e-320},
    ):
        record = small_record()
        record["statements"][0]["inputs"] |= hostile
        path.write_text(json.dumps(seal(record)))
        assert run(path)[0] == 1, hostile
