"""IDX files, the layout of MNIST and Fashion-MNIST, compressed or not."""

import gzip
import math
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import expanded_limit, regular

BYTES = 8
"""IDX's number for the type uint8, the only one these sets use."""


def read_idx(path: str | Path) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file: two zeros, the type, the number of dimensions, their sizes, the values."""
    file = regular(path)
    try:
        with file.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not compressed:
                return _read(raw, file)
            with gzip.open(raw) as values:
                return _read(values, file)  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}; fetch it again") from error


def _read(raw: IO[bytes], path: Path) -> NDArray[np.uint8]:
    head = raw.read(4)
    if len(head) < 4 or head[:3] != bytes([0, 0, BYTES]):
        raise DataError(f"{path} is not an IDX file of bytes")
    sizes = raw.read(4 * head[3])
    shape = [int.from_bytes(sizes[i : i + 4], "big") for i in range(0, len(sizes), 4)]
    wanted = math.prod(shape)
    if wanted > expanded_limit(path):
        raise DataError(
            f"{path} says that it holds {wanted:,} bytes, more than {expanded_limit(path):,}; it is not read"
        )
    values = raw.read(wanted + 1)  # one more than there should be
    if len(sizes) != 4 * head[3] or len(values) != wanted or not shape or len(shape) > 32:
        held = f"more than {wanted:,}" if len(values) > wanted else f"{len(values):,}"
        raise DataError(f"{path} should hold {'×'.join(map(str, shape))} bytes and holds {held}: fetch it again")
    return np.frombuffer(values, np.uint8).reshape(shape)
