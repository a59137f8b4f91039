"""The paper's numbers and grids."""

from pactrain.baselines.grid_search import combinations
from pactrain.experiments import glue, gnn
from pactrain.experiments.paper import GLUE, GNN


def test_the_papers_numbers_and_grids() -> None:
    assert GNN["citeseer", "gat"] == ((90.8, 0.3), (90.6, 0.5))
    assert GNN["dblp", "appnp"] == ((80.6, 2.8), (81.8, 0.5))
    assert len(GNN) == 20
    assert GLUE["qnli"][1] == (64.2, 0.02)
    for grids, sizes in ((gnn.GRIDS, (144, 8)), (glue.GRIDS, (1800, 12))):
        full, coarse = (combinations(grids[name]) for name in ("full", "coarse"))
        assert (len(full), len(coarse)) == sizes
        assert all(some in full for some in coarse)
