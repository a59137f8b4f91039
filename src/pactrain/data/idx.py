"""IDX files, the layout of MNIST and Fashion-MNIST, compressed or not."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError

BYTES = 8
"""IDX's number for the type uint8, the only one these sets use."""


def read_idx(path: str | Path) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file: two zeros, the type, the number of dimensions, their sizes, the values."""
    try:
        raw = Path(path).read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}; fetch it again") from error
    if len(raw) < 4 or raw[:3] != bytes([0, 0, BYTES]):
        raise DataError(f"{path} is not an IDX file of bytes")
    start = 4 + 4 * raw[3]
    shape = [int.from_bytes(raw[i : i + 4], "big") for i in range(4, start, 4)]
    if len(raw) != start + math.prod(shape):
        raise DataError(
            f"{path} should hold {'×'.join(map(str, shape))} bytes and holds {len(raw) - start:,}: fetch it again"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)
