"""One statement of a certificate: its value against 40 digits, its label, its words."""

import math
from dataclasses import replace

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
from tests.oracle_formulas import VALUES

KL = {
    "mean": 0.11, "values": 700, "delta_draws": 0.002, "kl": 31.0, "prior_nats": 7.0, "n": 900, "delta_bound": 0.008,
    "scale": 1.0,
}  # fmt: skip
UNBOUNDED = {
    "risk": 0.7, "kl": 31.0, "prior_nats": 7.0, "confidence_nats": 3.0, "n": 900, "gamma": 2.5, "complexity": 0.31,
}  # fmt: skip
ETA = {
    "objective": 0.9, "weights": 50, "mean_size": 1.3, "mean_variance": 0.2, "gamma_min": 0.5, "gamma_max": 20.0, "n": 900,
    "largest_kl": 400.0, "largest_k": 2.0, "delta": 0.05, "groups": 3,
}  # fmt: skip
CASES = [
    ("kl", KL),
    ("kl", KL | {"scale": 9.2}),
    ("unbounded (cgf)", UNBOUNDED),
    ("unbounded (paper)", UNBOUNDED),
    ("disintegrated", {"risk": 0.2, "log_ratio": 12.0, "prior_nats": 3.0, "n": 800, "delta_bound": 0.01}),
    ("test set", {"errors": 7, "n": 90, "delta_bound": 0.01}),
    ("training objective", {"risk": 0.7, "kl_term": 0.2, "complexity": 0.05}),
    ("training objective + η", ETA),
]


def test_every_formula_has_a_known_answer() -> None:
    assert {bound for bound, _ in CASES} == set(FORMULAS)


@pytest.mark.parametrize(("bound", "inputs"), CASES)
def test_values(bound: str, inputs: dict[str, float]) -> None:
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
        ("magic", KL), ("kl", {}), ("kl", KL | {"mean": 2.0}), ("kl", KL | {"values": 0}),
        ("unbounded (cgf)", UNBOUNDED | {"gamma": 0.0}), ("test set", {"errors": 7, "n": 5, "delta_bound": 0.1}),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_said(bound: str, inputs: dict[str, float]) -> None:
    with pytest.raises(PactrainError):
        Statement("x", MEAN, "heuristic", bound, 0.1, inputs).recompute()


def test_words() -> None:
    error = replace(statement("0-1 error", DRAWN, "certified", "kl", KL), value=0.1234)
    assert claim(error) == "one network drawn from the posterior is wrong in at most 12.3 % of the cases"
    held_out = replace(error, bound="test set", predictor=MEAN)
    assert claim(held_out).endswith("itself is wrong in at most 12.3 % of the cases (from held-out rows)")
    loss = replace(error, quantity="mse loss")
    assert claim(loss) == "one network drawn from the posterior has a mse loss of at most 0.123"
