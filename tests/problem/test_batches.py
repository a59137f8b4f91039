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


def test_rows_can_be_taken_one_by_one_and_batches_of_ones_own_cannot() -> None:
    x, y = torch.arange(10.0)[:, None], torch.arange(10.0)
    table, own = (
        TensorBatches((x, y), 4, counts=3),
        LoaderBatches([(x[:7], y[:7]), (x[7:], y[7:])], torch.device("cpu")),
    )
    assert table.table is table
    assert (table.steps, table.counts) == (2, 3)
    assert own.table is None
    assert (own.steps, own.counts, own.transform) == (None, 1, None)
    assert [len(b[1]) for b in table.chunks(5)] == [5, 5]
    assert [len(b[1]) for b in own.chunks(5)] == [7, 3]


def test_changed_batches_leave_the_given_ones_alone_and_can_be_read_again() -> None:
    x, y = torch.arange(10.0)[:, None], torch.arange(10.0)
    for given in (TensorBatches((x, y), 4), LoaderBatches([(x, y)], torch.device("cpu"))):
        halved = given.mapped(lambda batch: (batch[0] / 2, batch[1]))
        for _ in range(2):
            assert torch.equal(torch.cat([b[0] for b in halved.ordered()]), x / 2)
        assert torch.equal(torch.cat([b[0] for b in given.ordered()]), x)
