"""CIFAR from its binary files and from its pickles."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pactrain.data.cifar import normalised, read_cifar10, read_cifar100
from pactrain.runtime.errors import DataError
from tests.data.image_files import pixels
from tests.data.old_pickles import old_file

pytestmark = pytest.mark.usefixtures("no_data_of_the_machine")

FOLDER = "cifar-10-batches-bin"


def test_cifar_from_its_python_files(tmp_path: Path) -> None:
    parts = [pixels(2) for _ in range(6)]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for name, x in zip(names, parts, strict=True):
        old_file(tmp_path / "cifar-10-batches-py" / name, x, {"labels": [9, int(x[1, 0]) % 10]})
    images, labels = read_cifar10(tmp_path)
    assert (images.reshape(10, -1) == np.concatenate(parts[:5])).all()
    assert images.shape == (10, 3, 32, 32)
    assert labels.tolist()[::2] == [9] * 5
    assert len(read_cifar10(tmp_path, train=False)[1]) == 2
    for name in ("train", "test"):
        old_file(tmp_path / "cifar-100-python" / name, parts[0], {"coarse_labels": [1, 2], "fine_labels": [99, 7]})
    assert read_cifar100(tmp_path)[1].tolist() == [99, 7]
    old_file(tmp_path / "cifar-100-python" / "train", parts[0], {"coarse_labels": [1, 2], "fine_labels": [100, 7]})
    with pytest.raises(DataError, match="no list of 2 class numbers below 100"):
        read_cifar100(tmp_path)
    old_file(tmp_path / "cifar-100-python" / "train", parts[0], {"fine_labels": [7]})
    with pytest.raises(DataError, match="no list of 2 class numbers"):
        read_cifar100(tmp_path)
    old_file(tmp_path / "cifar-100-python" / "train", parts[0][:, :5], {"fine_labels": [7, 7]})
    with pytest.raises(DataError, match="no array 'data'"):
        read_cifar100(tmp_path)


def write_cifar(root: Path, per_file: int = 3) -> Any:
    (root / FOLDER).mkdir()
    rng = np.random.default_rng(0)
    tables = []
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        table = rng.integers(0, 256, (per_file, 3073), dtype=np.uint8)
        table[:, 0] = rng.integers(0, 10, per_file)
        table.tofile(root / FOLDER / name)
        tables.append(table)
    return np.concatenate(tables[:5])


def test_cifar_from_its_binary_files(tmp_path: Path) -> None:
    written = write_cifar(tmp_path)
    images, labels = read_cifar10(tmp_path)
    assert images.shape == (15, 3, 32, 32)
    assert (labels == written[:, 0]).all()
    assert images[4, 2, 31, 30] == written[4, 1 + 2 * 1024 + 31 * 32 + 30]
    assert len(read_cifar10(tmp_path, train=False)[1]) == 3
    scaled = normalised(images)
    assert scaled[0, 1, 0, 0] == pytest.approx((images[0, 1, 0, 0] / 255 - 0.4822) / 0.1994, rel=1e-5)
    broken = tmp_path / FOLDER / "data_batch_2.bin"
    broken.write_bytes(broken.read_bytes()[:-1])
    with pytest.raises(DataError, match="whole number of records"):
        read_cifar10(tmp_path)
    np.full((1, 3073), 77, dtype=np.uint8).tofile(broken)
    with pytest.raises(DataError, match="class 77"):
        read_cifar10(tmp_path)
