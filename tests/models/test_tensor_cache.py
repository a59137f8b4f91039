"""What is remembered of a graph is that of no other."""

import copy

import pytest
import torch

from tests.models.small_graph import NAMES, small_graph

pytest.importorskip("torch_geometric")


@pytest.mark.parametrize("name", NAMES)
def test_another_graph_is_not_mistaken_for_the_first(name: str) -> None:
    from pactrain.models.graph import graph_model

    x, edges = small_graph()
    model = graph_model(name, 40, 5).eval()
    alone = graph_model(name, 40, 5).eval()
    model(x, edges)
    torch.testing.assert_close(model(x[:20], edges[:, :0]), alone(x[:20], edges[:, :0]))
    x[0] = 1.0  # changed in place
    torch.testing.assert_close(model(x, edges), alone(x, edges))
    torch.testing.assert_close(copy.deepcopy(model)(x, edges), alone(x, edges))
    more = torch.cat([x, x[:3]])  # further nodes, the same edges
    torch.testing.assert_close(model(more, edges), graph_model(name, 40, 5).eval()(more, edges))
    fresh = graph_model(name, 40, 5)
    with torch.inference_mode():
        torch.testing.assert_close(model(x.clone(), edges.clone()), alone(x, edges))
        fresh(x, edges)
    fresh(x, edges).sum().backward()  # what was computed without gradients does not stand in their way
