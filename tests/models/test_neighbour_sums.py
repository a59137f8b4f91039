"""Messages along edges: their types, their derivatives."""

from typing import Any

import pytest
import torch

from pactrain.runtime.errors import DataError
from tests.models.small_graph import NAMES, small_graph

pytest.importorskip("torch_geometric")


@pytest.mark.parametrize("name", NAMES)
def test_edges_of_other_types_and_edges_to_nowhere(name: str) -> None:
    from pactrain.models.graph import graph_model

    x, edges = small_graph()
    model = graph_model(name, 40, 5).eval()
    torch.testing.assert_close(model(x, edges.int()), model(x, edges))
    for wrong in (30, 7_000_000, -1):
        for end in range(2):
            astray = edges.clone()
            astray[end, 0] = wrong
            with pytest.raises(DataError, match="edge_index names nodes"):
                model(x, astray)


def test_second_derivatives_are_refused_where_there_are_none() -> None:
    from pactrain.models.graph import graph_model

    model: Any = graph_model("gat", 40, 5).eval()
    (slope,) = torch.autograd.grad(model(*small_graph()).square().sum(), [model.first.lin.weight], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()
