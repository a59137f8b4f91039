"""A small CIFAR for experiments on images."""

from pathlib import Path

import pytest

from pactrain.certification import risks
from pactrain.experiments import images
from tests.experiments.small_images import write_cifar


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Images whose colour tells their class, in the published binary layout."""
    write_cifar(tmp_path)
    monkeypatch.setenv("PACTRAIN_DATA", str(tmp_path))
    monkeypatch.setattr(risks, "CHUNK_DRAWS", 20)  # the certificates are not looked at here
    images.digest_of.cache_clear()
    images.images_of.cache_clear()
    return tmp_path
