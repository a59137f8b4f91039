"""The bits of six small runs are those that were pinned for this platform; `python -m tests.faults.golden --pin` pins them anew."""

import pytest

from tests.faults.golden import RUNS, made, pinned, platform

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", RUNS)
def test_the_bits_of_a_run(name: str) -> None:
    if name == "graph":
        pytest.importorskip("torch_geometric")
    if name not in pinned():
        pytest.skip(f"nothing is pinned for {platform()}: python -m tests.faults.golden --pin")
    assert made(name) == pinned()[name]


def test_a_run_that_was_cut_off_is_the_same_run() -> None:
    assert made("resumed") == made("table")
