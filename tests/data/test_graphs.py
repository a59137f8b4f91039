"""Graphs from files, and their splits."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pactrain.data.download import download
from pactrain.data.graph_arrays import is_graph_file
from pactrain.data.graphs import SIZES, load_graph, load_graph_task, read_graph, split_nodes, with_split
from pactrain.runtime.errors import DataError
from tests.data.citation import mask, write_graph

pytest.importorskip("torch_geometric")


def test_a_split_of_the_paper_in_both_settings(tmp_path: Path) -> None:
    data = read_graph(write_graph(tmp_path / "g.npz", nodes=700))
    train, validation, test = split_nodes(data.y, 3)
    few, many = with_split(data, 3, nodes="train"), with_split(data, 3)
    assert sorted(train.tolist()) == few.train_mask.nonzero()[:, 0].tolist()
    assert sorted(validation.tolist()) == few.val_mask.nonzero()[:, 0].tolist()
    assert int(many.train_mask.sum()) == 560
    assert torch.equal(few.test_mask, many.test_mask)
    assert sorted(test.tolist()) == many.test_mask.nonzero()[:, 0].tolist()
    assert not hasattr(data, "train_mask")


def test_files_that_are_no_graph_or_a_broken_one(tmp_path: Path) -> None:
    table = tmp_path / "table.npz"
    np.savez(table, X=np.zeros((4, 2)), y=np.zeros(4))
    assert not is_graph_file(table)
    assert is_graph_file(write_graph(tmp_path / "g.npz"))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"labels": np.zeros(3, dtype=int)}, "labels has shape"),
        ({"labels": np.zeros(90)}, "class numbers"),
        ({"attr_shape": np.array([80, 12])}, "one graph"),
        ({"train_mask": np.ones(3, dtype=bool)}, "train_mask has shape"),
    ]
    for more, message in wrong:
        with pytest.raises(DataError, match=message):
            read_graph(write_graph(tmp_path / "broken.npz", **more))
    np.savez(tmp_path / "pickled.npz", adj_data=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="cannot be read as NPZ"):
        read_graph(tmp_path / "pickled.npz")


def test_masks_and_missing_labels_of_a_file(tmp_path: Path) -> None:
    own: dict[str, Any] = {"train_mask": mask(*range(30)).numpy(), "test_mask": mask(*range(30, 40)).numpy()}
    task = load_graph_task(
        str(write_graph(tmp_path / "g.npz", **own)), test_fraction=None, file_fraction=0.2, seed=0, root=None
    )
    assert (len(task.x_train), len(task.y_test)) == (30, 10)  # type: ignore[arg-type]
    assert task.encoder.inputs == task.inputs == 12
    assert set(read_graph(write_graph(tmp_path / "new.npz", labels=None)).y.tolist()) == {-1}


def test_downloads_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PACTRAIN_DATA", raising=False)
    source = write_graph(tmp_path / "pubmed.npz")
    monkeypatch.setattr("pactrain.data.graphs.HOME", f"{tmp_path.as_uri()}/{{}}.npz")
    with pytest.raises(DataError, match="it was removed"):
        load_graph("pubmed")
    assert not list((tmp_path / "cache" / "pactrain").iterdir())
    monkeypatch.setitem(SIZES, "pubmed", (90, 12, 3))
    assert load_graph("pubmed").x.shape == (90, 12)
    source.unlink()
    assert load_graph("pubmed").x.shape == (90, 12)  # from the cache
    with pytest.raises(DataError, match=r"could not be fetched.*--data-root"):
        load_graph("cora")
    known = tmp_path / "known"
    known.write_bytes(b"abc")
    digest = hashlib.sha256(b"abc").hexdigest()
    assert download(known.as_uri(), "known", sha256=digest).read_bytes() == b"abc"
    with pytest.raises(DataError, match="not the published file"):
        download(known.as_uri(), "other", sha256="0" * 64)
    assert not (tmp_path / "cache" / "pactrain" / "other").exists()


@pytest.mark.skipif(
    not (Path(os.environ.get("PACTRAIN_DATA", "")) / "citeseer.npz").is_file(),
    reason="PACTRAIN_DATA has no citeseer.npz",
)
def test_the_published_sizes() -> None:
    data = load_graph("citeseer")
    assert (*data.x.shape, int(data.y.max()) + 1) == SIZES["citeseer"]
    assert data.edge_index.shape == (2, 10_674)


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
