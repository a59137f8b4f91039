"""Sets of images as tensors, and as tasks whose rows are pixels, channel by channel."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pactrain.certification.statement import Caveat
from pactrain.data.catalogue import entry_of, fetch, files_of
from pactrain.data.cifar import CLASSES as CIFAR10
from pactrain.data.cifar import read_cifar10, read_cifar100
from pactrain.data.encoder import Encoder, Numeric
from pactrain.data.idx import read_idx
from pactrain.data.task import Task
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Callback, silent
from pactrain.runtime.untrusted import arrays_of

FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
NAMES: dict[str, tuple[str, ...]] = {
    "mnist": tuple(map(str, range(10))),
    "fashion_mnist": FASHION,
    "cifar10": CIFAR10,
    "cifar100": tuple(map(str, range(100))),
}
"""Sets of images, each with the names of its classes."""

GREY, COLOUR = (0.0, 255.0), (127.5, 63.75)
"""What is taken off a byte, and what it is divided by: constants that no image had a say in, as a certificate needs it."""

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ImageSet:
    """Training and test images with their classes.

    Attributes:
        name: Of the set.
        classes: Names of the classes.
        x_train: Training images as bytes of shape (n, channels, side, side).
        y_train: Their class numbers.
        x_test: Test images, likewise.
        y_test: Their class numbers.

    Example:
        >>> pixels, labels = torch.full((2, 1, 28, 28), 255, dtype=torch.uint8), torch.tensor([0, 1])
        >>> x, y = ImageSet("white", ("a", "b"), pixels, labels, pixels, labels).train
        >>> x.shape, x.max().item()
        (torch.Size([2, 1, 28, 28]), 1.0)
    """

    name: str
    classes: tuple[str, ...]
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor

    @property
    def train(self) -> Pair:
        """The training data as `fit` takes it."""
        return scaled(self.x_train), self.y_train

    @property
    def test(self) -> Pair:
        """The test data as `fit` takes it."""
        return scaled(self.x_test), self.y_test


def scaled(images: Tensor) -> Tensor:
    """Bytes as numbers of about unit size, by constants that depend on the number of channels alone."""
    center, spread = GREY if images.shape[1] == 1 else COLOUR
    return (images.float() - center) / spread


def load_images(name: str, root: str | Path | None = None, *, progress: Callback = silent) -> ImageSet:
    """Read a set of images by name; it is downloaded if it is not there.

    Args:
        name: "mnist", "fashion_mnist", "cifar10" or "cifar100".
        root: Folder of data sets; by default the one that `pactrain data` uses.
        progress: Hears of the download.

    Returns:
        The images and their classes.

    Raises:
        DataError: There is no such set, or its files cannot be had or read.

    Example:
        >>> load_images("letters")
        Traceback (most recent call last):
        pactrain.runtime.errors.DataError: there is no set of images 'letters'; use one of mnist, fashion_mnist, cifar10, cifar100
    """
    if name not in NAMES:
        raise DataError(f"there is no set of images {name!r}; use one of {', '.join(NAMES)}")
    fetch(entry_of(name), root, progress=progress)  # nothing if it is here
    if name.startswith("cifar"):
        read = read_cifar10 if name == "cifar10" else read_cifar100
        parts = [*read(root, train=True), *read(root, train=False)]
    else:
        parts = _grey(files_of(name, root))
    a, b, c, d = (torch.from_numpy(np.array(part)) for part in parts)
    return ImageSet(name, NAMES[name], a, b, c, d)


def _grey(files: list[Path]) -> list[NDArray[np.generic]]:
    """Grey images from one NPZ file, or from four IDX files: images and labels of training, then of the test."""
    if files[0].suffix == ".npz":
        parts = arrays_of(files[0], ("x_train", "y_train", "x_test", "y_test"))
    else:
        parts = [read_idx(path) for path in files]
    for x, y in (parts[:2], parts[2:]):
        if (
            x.ndim != 3
            or x.dtype != np.uint8
            or y.dtype.kind not in "iu"
            or y.shape != x.shape[:1]
            or (len(y) and not 0 <= y.min() <= y.max() < 10)
        ):
            raise DataError(
                f"{files[0]}: the images have the shape {x.shape} and their labels {y.shape}; "
                "there must be a class from 0 to 9 for each image"
            )
    return [part[:, None] if part.ndim == 3 else part.astype(np.int64) for part in parts]


def image_task(name: str, root: str | Path | None) -> Task:
    """A set of images as a task of rows."""
    return task_of_images(load_images(name, root))


def task_of_images(images: ImageSet, caveats: tuple[Caveat, ...] = ()) -> Task:
    """Images as a task of rows; new rows to predict for have the columns x0, x1, … of bytes."""
    center, spread = GREY if images.x_train.shape[1] == 1 else COLOUR
    pixels = images.x_train[0].numel()
    numeric = tuple(Numeric(f"x{i}", center, center, spread) for i in range(pixels))
    encoder = Encoder("target", "classification", numeric, (), (), images.classes, 0.0, 1.0)
    rows = [scaled(x).flatten(1).numpy() for x in (images.x_train, images.x_test)]
    return Task(images.name, encoder, rows[0], images.y_train.numpy(), rows[1], images.y_test.numpy(), caveats)
