"""Files made to do harm: bombs, untrue headers, numbers out of range, pickles that would run or blow up."""

import gzip
import io
import lzma
import pickle
import resource
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pactrain.data.archive import unpack
from pactrain.data.files import read_frame
from pactrain.data.glue import _together
from pactrain.data.graphs import read_graph
from pactrain.data.idx import read_idx
from pactrain.data.pickled import read_pickled
from pactrain.runtime.errors import DataError
from tests.data.citation import write_graph
from tests.faults.command import command
from tests.faults.operations import in_child

ROOM = 2 << 30
"""Bytes that refusing a file may take."""


def refused(read: Callable[[Path], Any], path: Path, said: str = "") -> None:
    """A file must be refused with little memory."""

    def limited() -> str:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
        with pytest.raises(DataError) as error:
            read(path)
        return str(error.value)

    code, message = in_child(limited)
    assert code == 0, message
    assert said in message


# -- graphs ------------------------------------------------------------------------------------------------------------

BIG = 10**9
WRONG: dict[str, Callable[[Any], Any]] = {
    "beyond the end": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size - 1, BIG, a),
    "below zero": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, -7, a.astype(np.int64)),
    "one too few": lambda a: a[:-1],
    "one too many": lambda a: np.append(a, a[-1:]),
    "backwards": lambda a: a[::-1].copy(),
    "two rows": lambda a: np.stack([a, a]),
    "a single number": lambda a: a[0],
    "nothing": lambda a: a[:0],
    "texts": lambda a: a.astype(str),
    "floating point": lambda a: a.astype(np.float64) + 0.5,
    "half precision": lambda a: a.astype(np.float16),
    "extended precision": lambda a: a.astype(np.longdouble),
    "complex": lambda a: a.astype(complex),
    "unsigned beyond all": lambda a: np.full(a.shape, 2**63 + 5, np.uint64),
    "NaN": lambda a: np.full(a.shape, np.nan),
}
ARRAYS = [f"{part}_{key}" for part in ("adj", "attr") for key in ("data", "indices", "indptr", "shape")] + ["labels"]


def harmless(name: str, how: str) -> bool:
    """True for changes that leave a graph, if another one."""
    numbers = name.endswith("data") and how in (
        "beyond the end",
        "below zero",
        "backwards",
        "floating point",
        "half precision",
        "extended precision",
        "unsigned beyond all",
    )
    return numbers or (name, how) in {("labels", "backwards"), ("adj_indices", "backwards"), ("attr_indices", "backwards"),
                                      ("adj_shape", "backwards")}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_a_graph(name: str, how: str, tmp_path: Path) -> None:
    path = write_graph(tmp_path / "g.npz")
    with np.load(path) as file:
        arrays = dict(file)
    arrays[name] = WRONG[how](arrays[name])
    np.savez(path, **arrays)
    if harmless(name, how):
        assert len(read_graph(path).x) == 90
        return
    with pytest.raises(DataError, match=r"g\.npz"):
        read_graph(path)


# -- NPZ ---------------------------------------------------------------------------------------------------------------


def npy(shape: tuple[int, ...], kind: str = "<f8", values: bytes = b"") -> bytes:
    """An array whose header may say anything."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


def zipped(path: Path, **members: bytes) -> Path:
    """An archive of these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def _twice(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile remarks on it
        for _ in range(2):
            file.writestr("X.npy", npy((2,), values=bytes(16)))


def _encrypted(path: Path) -> None:
    zipped(path, X=npy((2,), values=bytes(16)))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    content[6] |= 1
    path.write_bytes(content)


def _untrue_size(path: Path) -> None:
    zipped(path, X=npy((2,), values=bytes(16)))
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(content)


NPZ: dict[str, Callable[[Path], Any]] = {
    "a header of 10¹² numbers": lambda p: zipped(p, X=npy((10**12,))),
    "a header of negative size": lambda p: zipped(p, X=npy((-5,))),
    "a header of 10¹⁸ by 10¹⁸": lambda p: zipped(p, X=npy((10**18, 10**18))),
    "fewer numbers than its header says": lambda p: zipped(p, X=npy((9,), values=bytes(16))),
    "more numbers than its header says": lambda p: zipped(p, X=npy((1,), values=bytes(16))),
    "a header that nests": lambda p: zipped(p, X=npy((1,), kind="[" * 3000)),
    "objects": lambda p: np.savez(p, X=np.array([{}], dtype=object)),
    "records": lambda p: np.savez(p, X=np.zeros(3, dtype=[("a", "f8")])),
    "raw bytes": lambda p: np.savez(p, X=np.zeros(3, dtype="V5")),
    "no array": lambda p: zipped(p),
    "arrays of no numbers": lambda p: np.savez(p, X=np.zeros((0, 3)), y=np.zeros(0)),
    "arrays of different length": lambda p: np.savez(p, X=np.zeros((2, 3)), y=np.zeros(3)),
    "a column over another": lambda p: np.savez(p, X=np.zeros((2, 3)), X1=np.zeros(2)),
    "two arrays of one name": _twice,
    "something that is no array": lambda p: zipfile.ZipFile(p, "w").writestr("readme.txt", "hello"),
    "an encrypted member": _encrypted,
    "an untrue size": _untrue_size,
    "a format of the future": lambda p: zipped(p, X=b"\x93NUMPY\x09\x00" + bytes(60)),
}  # fmt: skip


@pytest.mark.parametrize("name", NPZ)
def test_tables_of_arrays(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    NPZ[name](path)
    refused(read_frame, path, "t.npz")


# -- images, archives, texts -------------------------------------------------------------------------------------------


def _tar(path: Path, **changes: Any) -> Path:
    """An archive of one file, of which the header says something untrue."""
    member = tarfile.TarInfo("cifar/data")
    member.size = 5
    for name, value in changes.items():
        setattr(member, name, value)
    with gzip.open(path, "wb") as file:
        file.write(member.tobuf(tarfile.GNU_FORMAT) + b"hello" + bytes(507 + 1024))
    return path


TARS: dict[str, dict[str, Any]] = {
    "a file of 10¹² bytes": {"size": 10**12},
    "a link": {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
    "a hard link": {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"},
    "a device": {"type": tarfile.CHRTYPE},
    "a pipe": {"type": tarfile.FIFOTYPE},
    "an absolute path": {"name": "/etc/passwd"},
    "a path upwards": {"name": "cifar/../../x"},
    "another folder": {"name": "elsewhere/data"},
    "a long name of 10¹⁰ bytes": {"type": tarfile.GNUTYPE_LONGNAME, "size": 10**10},
    "a header of 10¹⁰ bytes": {"type": tarfile.XHDTYPE, "size": 10**10},
}


@pytest.mark.parametrize("name", TARS)
def test_archives(name: str, tmp_path: Path) -> None:
    refused(lambda path: unpack(path, tmp_path / "out", folder="cifar"), _tar(tmp_path / "a.tar.gz", **TARS[name]))
    assert not list((tmp_path / "out").rglob("*"))


def test_a_bomb_of_zeros(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes([0, 0, 8, 1]) + struct.pack(">I", 10) + bytes(2**27), 1)
    (tmp_path / "images.gz").write_bytes(bomb)
    refused(read_idx, tmp_path / "images.gz", "holds more than 10")
    for shape in ((2**31, 2**31), (2**32 - 1,), (0xFFFF,) * 200):
        header = bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape)
        (tmp_path / "images.gz").write_bytes(gzip.compress(header + bytes(100)))
        refused(read_idx, tmp_path / "images.gz")


def test_texts_that_are_not_what_they_should_be(tmp_path: Path) -> None:
    for content in (
        b"{}",
        b"[]",
        b'{"sst2": 3}',
        b'{"sst2": {"train": [[1]]}}',
        b'{"sst2": {"train": [["a", 7]]}}',
        b"\xff",
    ):
        (tmp_path / "glue.xz").write_bytes(lzma.compress(content))
        refused(lambda path: _together(path, "sst2", "train"), tmp_path / "glue.xz", "glue.xz")


# -- pickles -----------------------------------------------------------------------------------------------------------


class Running:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit(77)",)


def _pairs(count: int) -> bytes:
    """A tuple of two of the same, so many times: to hash it, or to print it, takes 2^count steps."""
    return b"\x80\x02}" + b"]" + b"(K\x01K\x01t" + b"q\x00h\x00\x86" * count + b"K\x02s."


def _repeated() -> bytes:
    """A text that is made into bytes again and again: a megabyte, a hundred thousand times."""
    text = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20) + b"q\x01"
    return b"\x80\x02c_codecs\nencode\nq\x00" + text + b"h\x00h\x01\x85R" * 100_000 + b"."


PICKLES: dict[str, bytes] = {
    "code": pickle.dumps(Running(), protocol=2),
    "code in an array": pickle.dumps({b"data": Running()}, protocol=2),
    "a key that takes forever to hash": _pairs(60),
    "a text that is repeated": _repeated(),
    "a key of 10¹² bytes": pickle.dumps({10**12: 1}, protocol=2),
    "a list": pickle.dumps([1, 2], protocol=2),
    "nested lists": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "an end without a beginning": b"\x80\x02t.",
    "a number of many digits": b"I" + b"9" * 100_000 + b"\n.",
    "bytes of 2⁶³": b"\x80\x04\x8e" + struct.pack("<Q", 2**63 - 1) + b".",
    "memory never written": b"\x80\x02h\x07.",
    "floating point": pickle.dumps({b"data": np.zeros(3)}, protocol=2),
    "objects": pickle.dumps({b"data": np.array([None])}, protocol=2),
}


@pytest.mark.parametrize("name", PICKLES)
def test_pickles(name: str, tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(PICKLES[name])
    refused(read_pickled, tmp_path / "batch", "batch")


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_of_many_columns_is_read(tmp_path: Path) -> None:
    names = [f"column{i}" for i in range(20_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert read_frame(tmp_path / "wide.csv").shape == (1, 20_000)
    buffer = io.StringIO()
    buffer.write(",".join([*names, "column7"]) + "\n")
    (tmp_path / "wide.csv").write_text(buffer.getvalue())
    with pytest.raises(DataError, match="'column7' stands more than once"):
        read_frame(tmp_path / "wide.csv")


def test_names_of_rows_are_never_replaced_by_answers(made: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("x,prediction,=cmd\n1,first,=1+1\n2,second,@b\n")
    words = ("predict", made / "table", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    code, said = command(*words, "--id", "prediction")
    assert code == 2
    assert "a column of that name" in said
    assert command(*words, "--id", "=cmd")[0] == 0
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["'=cmd", "'=1+1", "'@b"]


def test_arrays_in_the_byte_order_of_another_machine(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.arange(4.0).astype(">f8"))
    assert read_frame(tmp_path / "t.npz")["X"].tolist() == [0, 1, 2, 3]
    assert read_frame(tmp_path / "t.npz")["X"].dtype == np.dtype("f8")


def test_columns_of_bytes(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"c": [b"\xff", b"a"], "y": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'c' holds bytes"):
        read_frame(tmp_path / "t.parquet")
