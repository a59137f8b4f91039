"""A little fuzzing in every run of the tests; `make fuzz` does more, and keeps what it finds in the corpus."""

import random
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pactrain import PactrainError
from tests.faults.fuzz import CORPUS, changed
from tests.faults.places import PLACES

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


@pytest.mark.parametrize("name", PLACES)
def test_changed_files_are_read_or_refused(name: str, made: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place, path = PLACES[name], tmp_path_factory.mktemp("fuzz") / name
    place.write(path, made)
    good = path.read_bytes()

    @QUICK
    @example(seed=0)
    @given(seed=st.integers(0, 2**32))
    def read(seed: int) -> None:
        path.write_bytes(changed(good, random.Random(seed)))
        answered(name, path)

    read()


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*")), ids=lambda file: file.name)
def test_what_fuzzing_has_found(file: Path, made: Path, tmp_path: Path) -> None:
    name = file.name.rpartition("-")[0]
    PLACES[name].write(tmp_path / name, made)
    (tmp_path / name).write_bytes(file.read_bytes())
    answered(name, tmp_path / name)


def answered(name: str, path: Path) -> None:
    """Read a file; anything but an answer or one of our errors is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, of odd numbers
        try:
            PLACES[name].read(path)
        except PactrainError:
            return
