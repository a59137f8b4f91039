"""CIFAR-10 from the binary files it is published as."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.data.named import data_file
from pactrain.errors import DataError

FOLDER = "cifar-10-batches-bin"
RECORD = 1 + 3 * 32 * 32
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def read_cifar10(root: str | Path | None = None, *, train: bool = True) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images as uint8 of shape (n, 3, 32, 32), and their classes."""
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if train else ["test_batch.bin"]
    records = [_records(data_file(f"{FOLDER}/{name}", root)) for name in names]
    table = np.concatenate(records)
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0].astype(np.int64)


def _records(path: Path) -> NDArray[Any]:
    raw = np.fromfile(path, dtype=np.uint8)
    if not len(raw) or len(raw) % RECORD:
        raise DataError(
            f"{path} holds {len(raw):,} bytes, which is no whole number of records of {RECORD:,}: fetch it again"
        )
    table = raw.reshape(-1, RECORD)
    if table[:, 0].max() > 9:
        raise DataError(f"{path} holds the class {table[:, 0].max()}; CIFAR-10 has classes 0 to 9")
    return table


def normalised(images: NDArray[Any]) -> NDArray[Any]:
    """Pixels in [0, 1] less the channel's mean over its std, both published constants of the whole set."""
    mean, std = (np.asarray(v, dtype=np.float32).reshape(1, 3, 1, 1) for v in (MEAN, STD))
    return (images.astype(np.float32) / 255 - mean) / std
