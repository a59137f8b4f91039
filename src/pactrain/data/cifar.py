"""CIFAR-10 and CIFAR-100 from the binary or the Python files they are published as."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.data.catalogue import files_of
from pactrain.data.pickled import read_pickled
from pactrain.runtime.errors import DataError

PIXELS = 3 * 32 * 32
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def read_cifar10(root: str | Path | None = None, *, train: bool = True) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images as uint8 of shape (n, 3, 32, 32), and their classes."""
    return _read("cifar10", root, train)


def read_cifar100(root: str | Path | None = None, *, train: bool = True) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images as uint8 of shape (n, 3, 32, 32), and their classes, the hundred fine ones."""
    return _read("cifar100", root, train)


def _read(name: str, root: str | Path | None, train: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    files = files_of(name, root)
    wanted = files[:-1] if train else files[-1:]
    classes = 10 if name == "cifar10" else 100
    parts = [_binary(path, classes) if path.suffix == ".bin" else _python(path, classes) for path in wanted]
    for path, (_, labels) in zip(wanted, parts, strict=True):
        if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
            raise DataError(f"{path} holds the class {labels.max()}; CIFAR-{classes} has classes 0 to {classes - 1}")
    images = np.concatenate([part[0] for part in parts])
    return images.reshape(-1, 3, 32, 32), np.concatenate([part[1] for part in parts])


def _binary(path: Path, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Records of a label (two in CIFAR-100, coarse and fine) and the pixels."""
    labels = 1 if classes == 10 else 2
    record = labels + PIXELS
    raw = np.fromfile(path, dtype=np.uint8)
    if not len(raw) or len(raw) % record:
        raise DataError(
            f"{path} holds {len(raw):,} bytes, which is no whole number of records of {record:,}: fetch it again"
        )
    table = raw.reshape(-1, record)
    return table[:, labels:], table[:, labels - 1].astype(np.int64)


def _python(path: Path, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """A pickled dictionary, read without running it."""
    found = read_pickled(path)
    pixels, labels = found.get(b"data"), found.get(b"labels" if classes == 10 else b"fine_labels")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != PIXELS:
        raise DataError(f"{path} has no array 'data' of rows of {PIXELS:,} bytes; fetch it again")
    known = isinstance(labels, list) and all(type(c) is int and 0 <= c < classes for c in labels)
    if labels is None or not known or len(labels) != len(pixels):
        raise DataError(f"{path} has no list of {len(pixels):,} class numbers below {classes}; fetch it again")
    return pixels, np.asarray(labels, dtype=np.int64)


def normalised(images: NDArray[Any]) -> NDArray[Any]:
    """Pixels in [0, 1] less the channel's mean over its std, both published constants of the whole set."""
    mean, std = (np.asarray(v, dtype=np.float32).reshape(1, 3, 1, 1) for v in (MEAN, STD))
    return (images.astype(np.float32) / 255 - mean) / std
