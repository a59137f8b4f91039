"""A budget of time is shared between training and the end of a run, and covers both."""

import math
import time
from dataclasses import replace

import pytest
import torch

import pactrain
from pactrain.training.budget import Budget
from pactrain.training.options import Options
from pactrain.training.time_left import FEWEST_ROWS, LEAST, MOST_OF_REST, REPORT_SECONDS, affordable_rows, for_training
from tests.zoo import build


def options(seconds: float, passed: float) -> Options:
    """Options of a call that began some time ago."""
    budget = Budget(seconds=seconds, started=time.monotonic() - passed)
    return Options(device="cpu", budget=budget)


def test_without_a_limit_on_time_nothing_is_cut() -> None:
    free = replace(options(10.0, 0.0), budget="5 epochs")
    assert for_training(free, 1.0) == math.inf
    assert affordable_rows(free, 10**9, 100.0) == (None, math.inf)


def test_training_gets_what_the_end_does_not_need() -> None:
    assert for_training(options(100.0, 20.0), 1e-6) == pytest.approx(80 - REPORT_SECONDS, abs=0.5)
    assert for_training(options(100.0, 20.0), 50.0) == pytest.approx((1 - MOST_OF_REST) * 80, abs=0.5)
    assert for_training(options(100.0, 300.0), 1.0) == LEAST * 100


def test_the_end_measures_as_many_rows_as_there_is_time_for() -> None:
    assert affordable_rows(options(100.0, 20.0), 10**6, 0.1)[0] is None
    rows, passes = affordable_rows(options(100.0, 87.0), 10**6, 2.0)
    assert rows is not None
    assert FEWEST_ROWS < rows < 10**6
    assert passes == 1
    assert affordable_rows(options(100.0, 300.0), 10**6, 1000.0)[0] == FEWEST_ROWS
    assert affordable_rows(options(100.0, 300.0), 100, 1000.0)[0] is None  # so few are always measured


def test_a_short_budget_measures_some_rows_and_says_so() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(30_000, 6, generator=g)
    y = (x[:, 0] + 0.3 * torch.randn(30_000, generator=g) > 0).long()
    result = pactrain.fit(build("mlp"), (x[:20_000], y[:20_000]), test=(x[20_000:], y[20_000:]), budget=0.001)
    certificate, train = result.certificate, result.metrics["train"]
    rows = train["measured"]
    assert FEWEST_ROWS <= rows < train["n"] == certificate.n == 20_000
    assert certificate.measured["rows"] == certificate.measured["values"] == rows
    assert not certificate.problems()
    assert {s.inputs["n"] for s in certificate.statements if s.bound == "kl"} == {20_000}
    assert any(f"on {rows:,} of the 20,000 rows" in note for note in certificate.notes)
    assert any(f"on {rows:,} of the 20,000 training rows" in note for note in result.notes)
    assert any(s.bound == "test set" and s.inputs["n"] == 10_000 for s in certificate.statements)


@pytest.mark.slow
def test_a_budget_covers_the_whole_call() -> None:
    """Within a fifth, on a machine that is not busy with other things."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(300_000, 6, generator=g)
    pactrain.fit(build("mlp"), (x[:500], (x[:500, 0] > 0).long()), budget="1 epoch")  # loads what is loaded late
    for seconds in (6.0, 15.0):
        began = time.monotonic()
        pactrain.fit(build("mlp"), (x, (x[:, 0] > 0).long()), budget=seconds)
        assert time.monotonic() - began <= 1.2 * seconds
