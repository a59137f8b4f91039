"""Settings for all tests."""

from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)  # the networks are tiny and the tests run side by side


@pytest.fixture
def no_data_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data is looked for in a folder of the test's own."""
    monkeypatch.delenv("PACTRAIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
