"""The store of results."""

from pathlib import Path

import pytest

from pactrain.experiments import Outcome, Run, Store
from pactrain.runtime.errors import RunError


def test_a_result_replaces_a_failure_and_is_never_replaced(tmp_path: Path) -> None:
    store, run = Store(tmp_path / "below" / "s.sqlite"), Run("a:b")
    assert store.get(run) is None
    store.write(run, Outcome(None, "Traceback …", 1.0))
    row = store.get(run)
    assert row is not None
    assert (row.metrics, row.error) == (None, "Traceback …")
    for metrics in ({"score": 1.5}, {"score": 2.5}):
        store.write(run, Outcome(metrics, None, 2.0, {"python": "3"}))
    store.write(run, Outcome(None, "later", 1.0))
    (row,) = Store(tmp_path / "below" / "s.sqlite").rows()
    assert (row.metrics, row.error, row.seconds, row.versions) == ({"score": 1.5}, None, 2.0, {"python": "3"})
    assert row.config == {"function": "a:b", "settings": {}, "seed": 0, "data": ""}


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("something else entirely\n" * 100)
    with pytest.raises(RunError, match="cannot be used as a store"):
        Store(tmp_path / "s.sqlite")
    assert (tmp_path / "s.sqlite").read_text().startswith("something else")
