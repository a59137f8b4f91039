"""Batches of examples held as tensors."""

from types import SimpleNamespace

import pytest
import torch

from pactrain.problem.batches import LoaderBatches, TensorBatches


def test_an_epoch_has_every_row_once_in_an_order_that_follows_from_the_seed() -> None:
    x = torch.arange(100).float()[:, None]
    batches = TensorBatches((x, x[:, 0].long()), 30)
    parts = list(batches.epoch(5))
    assert len(parts) == batches.steps == 3
    assert {len(y) for _, y in parts} == {33, 34}
    assert all(torch.equal(a[:, 0].long(), y) for a, y in parts)
    order = torch.cat([y for _, y in parts])
    assert sorted(order.tolist()) == list(range(100))
    assert torch.equal(order, torch.cat([y for _, y in batches.epoch(5)]))
    assert not torch.equal(order, torch.cat([y for _, y in batches.epoch(6)]))


@pytest.mark.parametrize("channels", [1, 3])
def test_batches_keep_the_layout_of_images(channels: int) -> None:
    """Grey images are contiguous in either layout; torch goes by their strides."""
    images = torch.randn(20, channels, 4, 4).to(memory_format=torch.channels_last)
    for x, _ in TensorBatches((images, torch.zeros(20)), 5).epoch(0):
        assert x.stride() == (16 * channels, 1, 4 * channels, channels)


def test_a_subset_of_batches_that_say_their_own_size() -> None:
    """torch-geometric's batches are objects, and a large graph's do not all fit into memory at once."""
    batches = LoaderBatches([SimpleNamespace(batch_size=40) for _ in range(30)], torch.device("cpu"))
    assert len(batches.subset(100, seed=0)) == 3
