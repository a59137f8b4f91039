"""Images as random bytes, and files of them in published layouts."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)


def pixels(n: int) -> np.ndarray[Any, Any]:
    return RNG.integers(0, 256, (n, 3072), dtype=np.uint8)


def idx(array: np.ndarray[Any, Any]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape) + array.tobytes()


def write_idx(folder: Path, *, compress: bool, n: int = 4) -> dict[str, np.ndarray[Any, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for part, images in (("train", n), ("t10k", 2)):
        arrays[f"{part}-images-idx3-ubyte"] = RNG.integers(0, 256, (images, 28, 28), dtype=np.uint8)
        arrays[f"{part}-labels-idx1-ubyte"] = RNG.integers(0, 10, images, dtype=np.uint8)
    for name, array in arrays.items():
        raw = idx(array)
        (folder / f"{name}{'.gz' if compress else ''}").write_bytes(gzip.compress(raw) if compress else raw)
    return arrays
