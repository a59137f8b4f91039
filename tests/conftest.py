"""Settings for all tests."""

import os
from pathlib import Path

import pytest
import torch

# Some virtual machines announce AMX tiles that they do not have: torch's products in bfloat16 then end the process.  Read at the first of them.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
torch.set_num_threads(1)  # the networks are tiny and the tests run side by side


@pytest.fixture
def no_data_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data is looked for in a folder of the test's own."""
    monkeypatch.delenv("PACTRAIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
