"""One statement of a certificate: its value against 40 digits, its label, its words."""

import math
from dataclasses import replace
from typing import Any

import pytest

from pactrain import PactrainError
from pactrain.certification.statement import (
    DRAWN,
    FORMULAS,
    MEAN,
    RANDOMISED,
    RANK,
    Caveat,
    Statement,
    claim,
    statement,
)
from tests.certification.inputs import ETA, KL, MEASURED, UNBOUNDED
from tests.oracle.formulas import VALUES

CHUNKS = {"bins": 32, "counts": "0:150 2:300 5:250 30:2", "values": 690.5, "choices": 19}
LEVELS: dict[str, Any] = {
    "levels": "800;30.5;9.25;900.0;1;0:600 1:300 / 400;4.0;0.0;30.5;32;8:1 32:30;0:26 6:5;0:30 2:1 / 100;0.5;0.0;90.0;1;0:9 1:81;0:80 1:10;0:88 1:2",
    "parts": 4,
    "n": 800,
    "delta_draws": 0.01,
    "delta_bound": 0.04,
}

CASES = [
    ("kl", KL),
    ("kl", KL | {"scale": 9.2}),
    ("kl", KL | CHUNKS),
    ("bernstein", MEASURED | CHUNKS | {"limit": 5.3, "u": 0.35}),
    ("bernstein", MEASURED | {"limit": 5.3, "u": 0.9}),
    ("unbounded (cgf)", UNBOUNDED),
    ("unbounded (paper)", UNBOUNDED),
    ("disintegrated", {"risk": 0.2, "log_ratio": 12.0, "prior_nats": 3.0, "n": 800, "delta_bound": 0.01}),
    ("test set", {"errors": 7, "n": 90, "delta_bound": 0.01}),
    ("counted rows", {"errors": 7, "n": 90, "delta_bound": 0.01}),
    ("progressive", {"blocks": "90:1 225:5 224:4", "n": 449, "delta_bound": 0.05}),
    ("progressive", {"blocks": "8:8 3:3 2:1", "n": 5, "delta_bound": 0.01}),
    ("recursive", LEVELS),
    ("recursive", {**LEVELS, "levels": LEVELS["levels"].partition(" / ")[0]}),
    ("training objective", {"risk": 0.7, "kl_term": 0.2, "complexity": 0.05}),
    ("training objective + η", ETA),
]


def test_every_formula_has_a_known_answer() -> None:
    assert {bound for bound, _ in CASES} == set(FORMULAS)


@pytest.mark.parametrize(("bound", "inputs"), CASES)
def test_values(bound: str, inputs: dict[str, Any]) -> None:
    made = statement("x", RANDOMISED, "heuristic", bound, inputs)
    assert made.value == pytest.approx(VALUES[bound](inputs), rel=1e-9)
    assert made.value == made.recompute()
    assert made == Statement("x", RANDOMISED, "heuristic", bound, made.value, inputs, "", "end of training", None)


def test_a_product_is_rounded_up() -> None:
    once = statement("x", RANDOMISED, "heuristic", "kl", KL).value
    for scale in (0.3, 7.7, 9.210340371976184):
        found = statement("x", RANDOMISED, "heuristic", "kl", KL | {"scale": scale}).value
        assert found == math.nextafter(scale * once, math.inf)


def test_what_is_given_is_kept() -> None:
    made = statement("x", DRAWN, "estimated", "kl", KL, prior="grid", when="once", constant_answer=3.0)
    assert made == Statement("x", DRAWN, "estimated", "kl", made.value, KL, "grid", "once", 3.0)


def test_vacuous_statements_are_heuristic() -> None:
    value = statement("x", MEAN, "certified", "kl", KL).value
    for constant, vacuous in ((None, False), (value + 1e-9, False), (value, True), (value - 1e-9, True), (0.0, True)):
        made = statement("x", MEAN, "certified", "kl", KL, constant_answer=constant)
        assert made.vacuous is vacuous
        assert made.label == ("heuristic" if vacuous else "certified")
        assert made.value == value


def test_labels_are_ordered() -> None:
    assert sorted(RANK, key=RANK.__getitem__) == ["heuristic", "estimated", "certified"]
    assert len(set(RANK.values())) == 3
    assert Caveat("why").label == "heuristic"


@pytest.mark.parametrize(
    ("bound", "inputs"),
    [
        ("magic", KL), ("kl", {}), ("kl", KL | {"counts": "2:5"}), ("kl", KL | {"values": 0}), ("kl", KL | {"values": 701}),
        ("kl", KL | {"counts": "many"}), ("bernstein", MEASURED | {"limit": 5.3, "u": 1.0}),
        ("unbounded (cgf)", UNBOUNDED | {"gamma": 0.0}), ("test set", {"errors": 7, "n": 5, "delta_bound": 0.1}),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_said(bound: str, inputs: dict[str, Any]) -> None:
    with pytest.raises(PactrainError):
        Statement("x", MEAN, "heuristic", bound, 0.1, inputs).recompute()


def test_what_measuring_costs() -> None:
    for bound, more in (("kl", {"scale": 2.0}), ("bernstein", {"limit": 5.3, "u": 0.35})):
        for inputs in (MEASURED | more, MEASURED | CHUNKS | more):
            exact = FORMULAS[bound](**inputs, exactly=True)
            assert exact == pytest.approx(VALUES[bound](inputs, exactly=True), rel=1e-9)
            assert exact < FORMULAS[bound](**inputs)


def test_words() -> None:
    error = replace(statement("0-1 error", DRAWN, "certified", "kl", KL), value=0.1234)
    assert (
        claim(error) == "one network drawn from the posterior is right in at least 87.6\N{NO-BREAK SPACE}% of the cases"
    )
    held_out = replace(error, bound="test set", predictor=MEAN)
    assert claim(held_out).endswith(
        "itself is right in at least 87.6\N{NO-BREAK SPACE}% of the cases (from held-out rows)"
    )
    loss = replace(error, quantity="mse loss")
    assert claim(loss) == "one network drawn from the posterior has a mse loss of at most 0.123"
    counted = replace(error, bound="counted rows", predictor=MEAN)
    assert claim(counted).endswith(
        "itself is right in at least 87.6\N{NO-BREAK SPACE}% of the cases (from rows that it was not trained on)"
    )
    large = replace(error, quantity="share of errors above 0.25", predictor=DRAWN)
    assert (
        claim(large)
        == "one network drawn from the posterior misses by at most 0.25 in at least 87.6\N{NO-BREAK SPACE}% of the cases"
    )
