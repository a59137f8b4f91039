"""Plans: the identity of a run, and what goes wrong in one."""

from typing import Any

import pytest

from pactrain.experiments import Run
from pactrain.experiments.plan import execute
from pactrain.runtime.errors import PactrainError


def test_an_identity_depends_on_everything_that_determines_the_run_and_on_nothing_else() -> None:
    run = Run("a:b", {"x": 1, "y": [0.1, 2]}, seed=3, data="digest", kind="quick")
    assert run.identity == "6135a97706b80930579e63de5cc5f8fc"  # of another session: it must never change
    assert run.identity == Run("a:b", {"y": (0.1, 2), "x": 1}, seed=3, data="digest").identity
    others = [
        Run("a:c", run.settings, 3, "digest"),
        Run("a:b", {"x": 1}, 3, "digest"),
        Run("a:b", run.settings, 4, "digest"),
        Run("a:b", run.settings, 3, "other"),
    ]
    assert len({run.identity, *(o.identity for o in others)}) == 5


@pytest.mark.parametrize(
    ("function", "settings"), [("nothing", {}), ("a:b", {"x": object()}), ("a:b", {"x": float("nan")})]
)
def test_a_run_that_could_not_be_stored_is_refused(function: str, settings: dict[str, Any]) -> None:
    with pytest.raises(PactrainError, match=r"write package\.module:function|not JSON"):
        Run(function, settings)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("tests.experiments.recipes:absent", "has no attribute 'absent'"),
        ("tests.nowhere:square", "No module named 'tests.nowhere'"),
        ("tests.experiments.recipes:not_a_dict", "not a dict of metrics"),
        ("tests.experiments.recipes:not_json", "not JSON serializable"),
        ("tests.experiments.recipes:square", "missing 1 required keyword-only argument"),
    ],
)
def test_whatever_goes_wrong_in_a_run_is_its_error(function: str, words: str) -> None:
    outcome = execute(Run(function).config)
    assert outcome.metrics is None
    assert outcome.error is not None
    assert "Traceback" in outcome.error
    assert words in outcome.error
