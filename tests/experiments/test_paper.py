"""The paper's numbers and grids."""

from pactrain.experiments.gnn import settings_of
from pactrain.experiments.paper import GLUE, GNN


def test_the_papers_numbers_and_grids() -> None:
    from pactrain.experiments import glue

    assert GNN["citeseer", "gat"] == ((90.8, 0.3), (90.6, 0.5))
    assert GNN["dblp", "appnp"] == ((80.6, 2.8), (81.8, 0.5))
    assert len(GNN) == 20
    assert GLUE["qnli"][1] == (64.2, 0.02)
    assert (len(settings_of("full")), len(settings_of("coarse"))) == (144, 8)
    assert (len(glue.settings_of("full")), len(glue.settings_of("coarse"))) == (1800, 12)
    for family in (settings_of, glue.settings_of):
        assert all(some in family("full") for some in family("coarse"))
