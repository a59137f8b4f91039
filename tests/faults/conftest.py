"""Small finished runs, made once, and copies of them to spoil."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.runs import make_runs

Copy = Callable[[str], Path]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `make_runs`."""
    return make_runs(tmp_path_factory.mktemp("faults"))


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Copy:
    """A function that copies one of the runs to a place of its own."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(made / name, tmp_path / name))

    return copied
