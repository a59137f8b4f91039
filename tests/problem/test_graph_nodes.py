"""Graphs and masks of nodes as data of `fit`."""

from pathlib import Path

import pytest
import torch

import pactrain
from pactrain.data.graphs import read_graph
from pactrain.problem.graph_nodes import nodes_of
from pactrain.runtime.errors import DataError
from tests.data.citation import mask, write_graph

CPU, F32 = torch.device("cpu"), torch.float32

pytest.importorskip("torch_geometric")


def test_fit_takes_a_graph_and_its_masks(tmp_path: Path) -> None:
    from pactrain.models.graph import graph_model

    data = read_graph(write_graph(tmp_path / "g.npz"))
    data.train_mask, data.test_mask = mask(*range(60)), mask(*range(60, 90))
    result = pactrain.fit(graph_model("gcn", 12, 3), data, test=data, budget="60 epochs")
    assert result.metrics["train"]["n"] == result.certificate.n == 60
    assert result.metrics["test"]["n"] == 30
    assert result.metrics["test"]["accuracy"] > 0.8
    assert {s.label for s in result.certificate.statements} == {"heuristic"}
    assert any("nodes of one graph" in c.reason for c in result.certificate.caveats)
    assert not any("also in the training data" in note for note in result.certificate.notes)
    with torch.no_grad():
        right = result.model.eval()(data.x, data.edge_index).argmax(1) == data.y
    assert float(right[60:].double().mean()) == pytest.approx(result.metrics["test"]["accuracy"])


def test_which_nodes_are_meant(tmp_path: Path) -> None:
    data = read_graph(write_graph(tmp_path / "g.npz"))
    data.y[5] = -1

    def nodes(role: str) -> list[int]:
        return nodes_of(data, role, device=CPU, dtype=F32).nodes.tolist()

    labelled = [i for i in range(90) if i != 5]
    assert nodes("training") == nodes("test") == labelled
    data.test_mask, data.val_mask = mask(0, 5, 7), mask(9)
    assert nodes("test") == [0, 7]
    assert nodes("validation") == [9]
    assert nodes("training") == [i for i in labelled if i not in (0, 7, 9)]
    data.train_mask = mask(5, 6)
    assert nodes("training") == [6]
    del data.test_mask
    with pytest.raises(DataError, match="no test_mask"):
        nodes("test")
    data.train_mask = torch.zeros(90, 4, dtype=torch.bool)
    with pytest.raises(DataError, match="of several splits choose one"):
        nodes("training")
    data.train_mask = mask(5)
    with pytest.raises(DataError, match="no labelled node"):
        nodes("training")


def test_testing_on_the_training_nodes_is_noticed(tmp_path: Path) -> None:
    from pactrain.models.graph import graph_model

    data = read_graph(write_graph(tmp_path / "g.npz"))
    result = pactrain.fit(graph_model("appnp", 12, 3), data, test=data, budget="2 epochs")
    assert any("90 test rows are also in the training data" in note for note in result.certificate.notes)
    assert result.certificate.measured["scheme"] == "chunks"  # neighbours share a network: no noise for each node
