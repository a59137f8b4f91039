"""A small CIFAR for experiments on images."""

from pathlib import Path

import numpy as np
import pytest

from pactrain.certification import risks
from pactrain.experiments import images


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Images whose colour tells their class, in the published binary layout."""
    chance = np.random.default_rng(0)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        labels = chance.integers(0, 10, 40).astype(np.uint8)
        shades = 20 * labels[:, None, None] + chance.integers(0, 40, (40, 3, 1024))
        records = np.concatenate([labels[:, None], shades.astype(np.uint8).reshape(40, -1)], axis=1)
        (folder / name).write_bytes(records.tobytes())
    monkeypatch.setenv("PACTRAIN_DATA", str(tmp_path))
    monkeypatch.setattr(risks, "CHUNK_DRAWS", 20)  # the certificates are not looked at here
    images.digest_of.cache_clear()
    images.images_of.cache_clear()
    return tmp_path
