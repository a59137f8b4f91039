"""Readers of published layouts, on small files of that layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pactrain.data.cifar import FOLDER, normalised, read_cifar10
from pactrain.data.graphs import load_graph, split_nodes
from pactrain.runtime.errors import DataError


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


def test_a_graph_from_its_raw_file(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    features = np.eye(4, 6, dtype=np.float32)
    rows, columns = features.nonzero()
    np.savez(
        tmp_path / "pubmed.npz",
        adj_data=np.ones(2, dtype=np.float32),
        adj_indices=np.array([1, 2]),
        adj_indptr=np.array([0, 1, 2, 2, 2]),
        adj_shape=np.array([4, 4]),
        attr_data=features[rows, columns],
        attr_indices=columns,
        attr_indptr=np.array([0, 1, 2, 3, 4]),
        attr_shape=np.array([4, 6]),
        labels=np.array([0, 1, 1, 0]),
    )
    graph = load_graph("pubmed", tmp_path)
    assert torch.equal(graph.x, torch.from_numpy(features))
    assert {tuple(e) for e in graph.edge_index.T.tolist()} == {(0, 1), (1, 0), (1, 2), (2, 1)}
    with pytest.raises(DataError, match="use one of cora_ml"):
        load_graph("moebius", tmp_path)


def test_nodes_are_split_as_in_the_paper() -> None:
    labels = torch.arange(3000) % 6
    train, validation, test = split_nodes(labels, seed=1)
    assert torch.bincount(labels[train]).tolist() == [20] * 6
    assert len(validation) == 500
    assert sorted(torch.cat([train, validation, test]).tolist()) == list(range(3000))
    assert not torch.equal(train, split_nodes(labels, seed=2)[0])
