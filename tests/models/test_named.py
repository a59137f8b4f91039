"""Which networks suit which data."""

from pathlib import Path

import pytest

from pactrain.data.load import load
from pactrain.data.tables import Columns
from pactrain.models.named import chosen_model
from pactrain.runtime.errors import DataError, PactrainError
from tests.data.citation import write_graph


def test_networks_and_data_that_do_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    graph = load(str(write_graph(tmp_path / "g.npz"))).encoder
    assert chosen_model(None, graph) == "gcn"
    with pytest.raises(PactrainError, match="does not see edges"):
        chosen_model("mlp:30", graph)
    with pytest.raises(PactrainError, match="needs a graph"):
        chosen_model("gat", load("iris").encoder)
    with pytest.raises(DataError, match="is a graph"):
        load(str(tmp_path / "g.npz"), Columns(target="labels"))
