"""Pickles are read without running what they hold."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pactrain.data.cifar import read_cifar100
from pactrain.data.pickled import read_pickled
from pactrain.runtime.errors import DataError
from tests.data.image_files import pixels
from tests.data.old_pickles import old_file


def test_the_hand_written_pickles_are_what_python_reads_too(tmp_path: Path) -> None:
    x = pixels(2)
    old_file(tmp_path / "f", x, {"labels": [3, 4]})
    by_python = pickle.loads((tmp_path / "f").read_bytes(), encoding="bytes")
    ours = read_pickled(tmp_path / "f")
    assert by_python.keys() == ours.keys()
    assert (by_python[b"data"] == ours[b"data"]).all()
    assert by_python[b"labels"] == ours[b"labels"] == [3, 4]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("as_text", [False, True])
def test_pickles_that_were_written_again_by_python_3(tmp_path: Path, protocol: int, as_text: bool) -> None:
    x = np.asfortranarray(pixels(3))
    keys = ("data", "labels") if as_text else (b"data", b"labels")
    (tmp_path / "f").write_bytes(pickle.dumps(dict(zip(keys, (x, [1, 2, 300]), strict=True)), protocol))
    found = read_pickled(tmp_path / "f")
    assert (found[b"data"] == x).all()
    assert found[b"labels"] == [1, 2, 300]


class Runs:
    """What an attacker would pickle."""

    def __init__(self, goal: Path) -> None:
        self.goal = goal

    def __reduce__(self) -> Any:
        import os

        return os.system, (f"touch {self.goal}",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path, protocol: int) -> None:
    evil, proof = tmp_path / "cifar-100-python" / "train", tmp_path / "it ran"
    evil.parent.mkdir()
    evil.write_bytes(pickle.dumps({b"data": Runs(proof), b"fine_labels": [1]}, protocol))
    (evil.parent / "test").write_bytes(evil.read_bytes())
    with pytest.raises(DataError, match="nothing of it was run"):
        read_cifar100(tmp_path)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02cbuiltins\neval\n.", "names builtins.eval"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "calls numpy.ndarray"),
        (b"\x80\x02cnumpy\ndtype\n}b.", "name instead of array"),
        (b"\x80\x02(i__main__\nX\n.", "instruction INST"),
        (b"\x80\x02]K\x01\x81.", "instruction NEWOBJ"),
        (b"\x80\x02}q\x01(U\x04da", "not a whole file"),
        (b"\x80\x02K\x01.", "a int and not CIFAR's dictionary"),
        (b"", "not a whole file"),
        (b"\x80\x02\x85.", "do not fit together"),
        (pickle.dumps({b"data": np.zeros(2)}, 2), "something else than uint8"),
    ],
)
def test_pickles_of_another_kind_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_pickled(tmp_path / "f")
