"""CIFAR's pickles, written by hand as Python 2 wrote them."""

import struct
from pathlib import Path
from typing import Any

import numpy as np


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
