"""Images in files of the user's own: an NPZ file of bytes in Keras' layout, or a folder of IDX files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.data.catalogue import IDX
from pactrain.data.idx import read_idx
from pactrain.data.splits import OWN_TEST
from pactrain.data.task import Task
from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import arrays_of, forms_of

KERAS = ("x_train", "y_train", "x_test", "y_test")
CHANNELS, MOST_CLASSES = (1, 3), 1000


def has_images(path: Path) -> bool:
    """True for an NPZ file with training and test images as bytes, and for a folder with the four files of MNIST's layout."""
    if path.is_dir():
        return all(_idx_file(path, name) is not None for name in IDX)
    forms = forms_of(path) if path.suffix.lower() == ".npz" else {}
    return set(forms) == set(KERAS) and all(len(forms[x][0]) > 2 and forms[x][1] == np.uint8 for x in KERAS[::2])


def load_image_file(path: Path) -> Task:
    """The images as a task of rows.

    Args:
        path: One for which `has_images` holds.

    Raises:
        DataError: The arrays do not belong together.
    """
    import torch  # which a table does not wait for

    from pactrain.data.images import ImageSet, task_of_images

    if path.is_dir():
        parts = [read_idx(_idx_file(path, name) or path / name) for name in IDX]
    else:
        parts = arrays_of(path, KERAS)
    x_train, y_train, x_test, y_test = parts
    images, labels = [_channels_first(x, path) for x in (x_train, x_test)], [y_train, y_test]
    if images[0].shape[1:] != images[1].shape[1:]:
        raise DataError(
            f"{path}: training images of {images[0].shape[1:]} and test images of {images[1].shape[1:]} cannot go through one network"
        )
    for x, y in zip(images, labels, strict=True):
        if y.dtype.kind not in "iu" or y.size != len(x) or not len(x) or not 0 <= y.min() <= y.max() < MOST_CLASSES:
            raise DataError(
                f"{path}: {len(x):,} images have labels of shape {y.shape} ({y.dtype}); each needs a class, a whole number from 0 to {MOST_CLASSES - 1}"
            )
    classes = tuple(map(str, range(int(max(y.max() for y in labels)) + 1)))
    a, c = map(torch.from_numpy, images)
    b, d = (torch.from_numpy(y.reshape(-1).astype(np.int64)) for y in labels)
    return task_of_images(ImageSet(path.name, classes, a, b, c, d), caveats=(OWN_TEST,))


def _idx_file(folder: Path, name: str) -> Path | None:
    """An IDX file, compressed or not."""
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def _channels_first(images: NDArray[Any], path: Path) -> NDArray[Any]:
    """Images with their channels before height and width."""
    if images.ndim == 3:
        return np.array(images[:, None])
    if images.ndim == 4 and images.shape[1] in CHANNELS:
        return np.array(images)
    if images.ndim == 4 and images.shape[3] in CHANNELS:
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    raise DataError(
        f"{path}: images of shape {images.shape} are not read; they are (n, height, width), or have 1 or 3 channels first or last"
    )
