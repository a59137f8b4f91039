"""CIFAR's pickles, written by hand as Python 2 wrote them, and pickles that want more than to be read."""

import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pactrain.data.cifar import read_cifar10, read_cifar100
from pactrain.data.pickled import read_pickled
from pactrain.runtime.errors import DataError
from tests.image_files import pixels

pytestmark = pytest.mark.usefixtures("no_data_of_the_machine")


def old_bytes(raw: bytes) -> bytes:
    """Python 2's `str`."""
    return b"U" + bytes([len(raw)]) + raw if len(raw) < 256 else b"T" + struct.pack("<i", len(raw)) + raw


def old_array(array: np.ndarray[Any, Any]) -> bytes:
    """A uint8 array by protocol 2, as numpy wrote it in 2009."""
    kind = b"cnumpy\ndtype\n" + old_bytes(b"u1") + b"K\x00K\x01\x87R(K\x03" + old_bytes(b"|") + b"NNN"
    kind += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"".join(b"M" + struct.pack("<H", n) for n in array.shape)
    start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + old_bytes(b"b") + b"\x87R"
    return start + b"(K\x01" + shape + b"\x86" + kind + b"\x89" + old_bytes(array.tobytes()) + b"tb"


def old_file(path: Path, array: np.ndarray[Any, Any], labels: dict[str, list[int]]) -> None:
    """A dictionary by protocol 2, its labels put into the memory and read back as the published files do."""
    body = b"\x80\x02}q\x01(" + old_bytes(b"batch_label") + old_bytes(b"one")
    for number, (key, values) in enumerate(labels.items(), start=2):
        numbers = b"".join(b"K" + bytes([v]) for v in values)
        body += old_bytes(key.encode()) + b"]q" + bytes([number]) + b"(" + numbers + b"e"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(body + old_bytes(b"data") + old_array(array) + b"u.")


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


def test_cifar_from_its_python_files(tmp_path: Path) -> None:
    parts = [pixels(2) for _ in range(6)]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for name, x in zip(names, parts, strict=True):
        old_file(tmp_path / "cifar-10-batches-py" / name, x, {"labels": [9, int(x[1, 0]) % 10]})
    images, labels = read_cifar10(tmp_path)
    assert (images.reshape(10, -1) == np.concatenate(parts[:5])).all()
    assert images.shape == (10, 3, 32, 32)
    assert labels.tolist()[::2] == [9] * 5
    assert len(read_cifar10(tmp_path, train=False)[1]) == 2
    for name in ("train", "test"):
        old_file(tmp_path / "cifar-100-python" / name, parts[0], {"coarse_labels": [1, 2], "fine_labels": [99, 7]})
    assert read_cifar100(tmp_path)[1].tolist() == [99, 7]
    old_file(tmp_path / "cifar-100-python" / "train", parts[0], {"coarse_labels": [1, 2], "fine_labels": [100, 7]})
    with pytest.raises(DataError, match="class 100; CIFAR-100 has classes 0 to 99"):
        read_cifar100(tmp_path)
    old_file(tmp_path / "cifar-100-python" / "train", parts[0], {"fine_labels": [7]})
    with pytest.raises(DataError, match="no list of 2 class numbers"):
        read_cifar100(tmp_path)
    old_file(tmp_path / "cifar-100-python" / "train", parts[0][:, :5], {"fine_labels": [7, 7]})
    with pytest.raises(DataError, match="no array 'data'"):
        read_cifar100(tmp_path)


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
