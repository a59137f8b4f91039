"""Settings of a cell are chosen by validation and trained again."""

import math

import pytest

from pactrain.experiments.table_cells import compare, paired
from tests.experiments.small_cells import carry_out, cell


def test_paired_differences() -> None:
    mean, half = paired([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    assert mean == pytest.approx(2.0)
    assert half == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert math.isnan(paired([1.0], [2.0])[1])


def test_settings_are_chosen_by_validation_and_trained_again() -> None:
    (found,) = compare([cell(True)], carry_out)
    assert [c["k"] for c in found.chosen] == [1, 1]  # equal accuracy: the smaller loss
    assert found.erm.scores == pytest.approx((80.1, 81.1))
    assert found.pac_bayes.scores == pytest.approx((90.0, 91.0))
    assert found.erm.trainings == 2 * 4 + 2
    assert found.erm.seconds == 2 * 3 + 2  # the failed ones told no time
    assert found.failed == 2
    assert found.difference()[0] == pytest.approx(9.9)
    assert found.every[:3] == pytest.approx((50, 60, 70))
    assert math.isnan(found.every[3])


def test_the_papers_protocol_and_settings_that_are_not_trained_again() -> None:
    (found,) = compare([cell(False)], carry_out, choose="test")
    assert [c["k"] for c in found.chosen] == [2, 2]
    assert found.erm.scores == pytest.approx((70, 70))
    assert found.erm.trainings == 8
    (every,) = compare([cell(True)], carry_out, every=True)
    assert every.every[:3] == pytest.approx((80.5, 80.6, 80.7))
    assert every.erm.scores == pytest.approx((80.1, 81.1))
