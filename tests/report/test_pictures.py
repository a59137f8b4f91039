"""Rows that are images, as PNG files."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

from pactrain.report.pictures import data_uri, png
from pactrain.report.read import Run


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_holds_the_pixels(channels: int) -> None:
    values = np.random.default_rng(0).uniform(-2, 3, (channels, 4, 5))
    values[0, 0, 0], values[0, 0, 1] = -2, 3
    read = imread(io.BytesIO(png(values.flatten().tolist(), channels, 4, 5)))
    expected = ((values + 2) / 5).transpose(1, 2, 0)
    assert read == pytest.approx(expected[..., 0] if channels == 1 else expected, abs=1 / 255)


def run(name: str, shape: list[int]) -> Run:
    """A run on named data."""
    return Run("r", {"data": {"name": name}}, analysis={"shape": shape})


def test_only_images_become_pictures() -> None:
    row = {"inputs": [0.0] * 64}
    assert str(data_uri(run("digits", [64]), row)).startswith("data:image/png;base64,")
    assert data_uri(run("my.csv", [64]), row) is None
    assert data_uri(run("my.csv", [1, 8, 8]), row) is not None
    assert data_uri(run("my.csv", [1, 8, 9]), row) is None
    assert data_uri(run("digits", [64]), {}) is None
