"""Tables of results beside the paper's."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from pactrain.cli.reproduce import show
from pactrain.experiments.paper import GNN
from pactrain.experiments.table_cells import CellResult, compare
from tests.experiments.small_cells import carry_out, cell


def test_a_table_names_the_cells_in_which_it_is_behind() -> None:
    (ahead,) = compare([cell(True)], carry_out)
    behind = replace(ahead, names=("some", "other"), pac_bayes=ahead.erm, erm=ahead.pac_bayes)
    assert "Behind" not in shown([ahead])
    assert "Behind in some other -9.9." in shown([ahead, behind])
    assert "paper" not in shown([ahead])  # no column without a number
    assert "paper: PAC-Bayes" in shown([ahead, replace(ahead, paper=GNN["cora_ml", "gcn"])])


def shown(cells: list[CellResult]) -> str:
    screen = Console(file=io.StringIO(), width=200)
    show(screen, "a title", cells, "validation")
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_the_papers_numbers_stand_beside_its_own_setting_only() -> None:
    pytest.importorskip("torch_geometric")
    from pactrain.experiments.gnn import _cell

    own, other = (_cell("cora_ml", "gcn", 1, [], nodes, "digest").paper for nodes in ("train+val", "train"))
    assert own == GNN["cora_ml", "gcn"]
    assert other is None
