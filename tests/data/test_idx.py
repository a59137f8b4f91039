"""MNIST and its kin from IDX files, and from the single file of numpy."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from pactrain.data import load_images
from pactrain.data.load import load
from pactrain.runtime.errors import DataError
from tests.data.image_files import idx, write_idx

pytestmark = pytest.mark.usefixtures("no_data_of_the_machine")


@pytest.mark.parametrize(
    ("name", "folder", "compress"), [("mnist", "MNIST/raw", False), ("fashion_mnist", "fashion_mnist", True)]
)
def test_images_from_idx_files(tmp_path: Path, name: str, folder: str, compress: bool) -> None:
    arrays = write_idx(tmp_path / folder, compress=compress)
    found = load_images(name, tmp_path)
    assert (found.x_train[:, 0].numpy() == arrays["train-images-idx3-ubyte"]).all()
    assert found.y_test.tolist() == arrays["t10k-labels-idx1-ubyte"].tolist()
    assert found.x_train.dtype == torch.uint8
    assert torch.equal(found.train[0], found.x_train.float() / 255)
    assert found.test[1].dtype == torch.int64
    task = load(name, root=tmp_path)
    assert task.x_train.shape == (4, 784)
    assert task.caveats == ()
    assert (task.x_train.reshape(4, 28, 28) == found.train[0][:, 0].numpy()).all()


def test_idx_files_that_are_not_whole(tmp_path: Path) -> None:
    write_idx(tmp_path / "mnist", compress=False)
    labels, images = tmp_path / "mnist/train-labels-idx1-ubyte", tmp_path / "mnist/train-images-idx3-ubyte"
    kept = images.read_bytes()
    for content, message in (
        (kept[:-1], "should hold 4×28×28 bytes and holds 3,135"),
        (b"GIF89a", "not an IDX file"),
        (gzip.compress(kept)[:-9], "cannot be read"),
    ):
        images.write_bytes(content)
        with pytest.raises(DataError, match=message):
            load_images("mnist", tmp_path)
    images.write_bytes(kept)
    labels.write_bytes(idx(np.full(4, 11, dtype=np.uint8)))
    with pytest.raises(DataError, match="a class from 0 to 9 for each image"):
        load_images("mnist", tmp_path)


def test_the_single_file_of_mnist_gives_the_same_task(tmp_path: Path) -> None:
    arrays = write_idx(tmp_path / "mnist", compress=True)
    a, b, c, d = arrays.values()
    (tmp_path / "other").mkdir()
    np.savez(tmp_path / "other" / "mnist.npz", x_train=a, y_train=b, x_test=c, y_test=d)
    one, two = (load("mnist", root=tmp_path / folder) for folder in (".", "other"))
    assert (one.x_train == two.x_train).all()
    assert one.encoder == two.encoder
