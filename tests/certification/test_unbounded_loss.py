"""The unbounded loss: what label it has, and the moment of all examples together."""

import math

import numpy as np
import pytest

from pactrain.certification.make_statements import about
from pactrain.certification.statement import Label
from pactrain.certification.unbounded_loss import _mfold
from tests.certification.small_posteriors import subject_of


@pytest.mark.parametrize(
    ("n", "kl", "label", "expected"),
    [
        (100, 0.0, "certified", "estimated"), (99, 0.0, "certified", "heuristic"), (100, 0.0, "estimated", "estimated"),
        (100, 0.0, "heuristic", "heuristic"), (100, 2.99, "certified", "estimated"), (100, 3.0, "certified", "heuristic"),
    ],
)  # fmt: skip
def test_the_unbounded_loss_is_estimated_where_the_draws_can_see_it(
    n: int, kl: float, label: Label, expected: str
) -> None:
    statements, measured, notes = about(subject_of(n, shift=math.sqrt(kl), label=label), "once")
    assert [s.bound for s in statements] == ["unbounded (cgf)", "unbounded (paper)"]
    for s in statements:
        assert (s.quantity, s.label, s.prior, s.when) == ("loss", expected, "fixed in advance", "once")
        assert s.inputs["kl"] == pytest.approx(kl, abs=1e-5)
        assert s.constant_answer is None
    assert (measured["n"], measured["draws"], notes) == (n, 10, [])


def test_the_moment_is_that_of_all_examples_together() -> None:
    table = np.array([[0.01, 0.3, -2e-12], [0.02, 0.1, -1e-12]])
    expected = [
        (math.log(math.exp(50 * a) + math.exp(50 * b)) - math.log(2)) / 50 for a, b in table.T[:2].tolist()
    ]  # fmt: skip
    found = _mfold(table, 50).tolist()
    assert found[:2] == pytest.approx(expected, rel=1e-12)
    assert found[2] == 0.0  # a rounding error below zero is none
