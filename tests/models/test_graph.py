"""Graph networks: the functions they compute, and how `fit` trains them."""

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import pactrain
from tests.models.small_graph import NAMES, small_graph

pytest.importorskip("torch_geometric")


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_sizes(name: str) -> None:
    from pactrain.models.graph import graph_model

    model = graph_model(name, 40, 5)
    width = 64 if name == "gat" else 32
    shapes = {tuple(p.shape) for p in model.parameters()}
    assert (width, 40) in shapes
    assert (5, width) in shapes
    assert model(*small_graph()).shape == (30, 5)
    again = graph_model(name, 40, 5)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def twin(name: str, ours: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """The same network out of torch-geometric's own layers, which share our parameters."""
    import torch_geometric.nn as pyg

    def layer(own: Any, inputs: int, outputs: int, heads: int) -> Any:
        if name == "gat":
            theirs = pyg.GATConv(inputs, outputs // heads, heads=heads)
            theirs.att_src, theirs.att_dst = own.att_src, own.att_dst
        elif name == "sage":
            theirs = pyg.SAGEConv(inputs, outputs)
            theirs.lin_l.weight, theirs.lin_l.bias, theirs.lin_r.weight = (
                own.neighbours.weight,
                own.own.bias,
                own.own.weight,
            )
            return theirs
        else:
            theirs = pyg.GCNConv(inputs, outputs)
        theirs.lin.weight, theirs.bias = own.lin.weight, own.bias
        return theirs

    if name == "appnp":
        spread = pyg.APPNP(K=10, alpha=0.1)
        return lambda x, edges: spread(ours.second(torch.relu(ours.first(x))), edges)
    width = 64 if name == "gat" else 32
    first, second = layer(ours.first, 40, width, 8), layer(ours.second, width, 5, 1)
    return lambda x, edges: second(torch.relu(first(x, edges)), edges)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_functions_and_gradients_as_torch_geometrics_own(name: str) -> None:
    from pactrain.models.graph import graph_model

    x, edges = small_graph()
    # a self-loop, an edge twice, edges of one direction only, and a node without any
    edges = torch.cat([edges, torch.tensor([[3, 0, 0, 1, 2], [3, 7, 7, 2, 5]])], 1)
    edges = edges[:, torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(1))]
    edges = edges[:, (edges != 29).all(0)]
    model = graph_model(name, 40, 5).double().eval()
    theirs, target = twin(name, model), torch.randn(30, 5, generator=torch.Generator().manual_seed(2)).double()
    parameters = list(model.parameters())
    results = []
    for network in (model, theirs):
        scores = network(x.double(), edges)
        results.append((scores, torch.autograd.grad((scores * target).sum(), parameters)))
    (ours, ours_gradients), (expected, gradients) = results
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(ours_gradients, gradients)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_where_there_are_such_products(name: str) -> None:
    from pactrain.models.graph import graph_model

    x, edges = small_graph()
    model = graph_model(name, 40, 5).eval()
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(x, edges)
        scores.float().sum().backward()
    torch.testing.assert_close(scores.float(), model(x, edges), atol=0.004, rtol=0.02)
    halved = copy.deepcopy(model).bfloat16()(x.bfloat16(), edges)
    torch.testing.assert_close(halved.float(), model(x, edges), atol=0.004, rtol=0.02)


def test_attention_is_dropped_in_training_only() -> None:
    from pactrain.models.graph import graph_model

    x, edges = small_graph()
    model: Any = graph_model("gat", 40, 5)
    with torch.no_grad():
        exact = model.eval()(x, edges)
        torch.manual_seed(0)
        hidden = torch.stack([model.train().first(x, model.attention._kept[3]) for _ in range(4000)])
        expected = model.eval().first(x, model.attention._kept[3])
    assert not torch.equal(hidden[0], hidden[1])
    torch.testing.assert_close(hidden.mean(0), expected, atol=0.03, rtol=0)  # unbiased, one layer deep
    torch.testing.assert_close(model(x, edges), exact)


def test_appnp_spreads_scores_by_personalised_pagerank() -> None:
    from pactrain.models.graph import APPNP

    x, edges = small_graph()
    model = APPNP(40, 5)
    dense = torch.eye(30)
    dense[edges[0], edges[1]] = 1.0
    scale = dense.sum(1).rsqrt()
    spread = scale[:, None] * dense * scale[None]
    own = model.second(torch.relu(model.first(x)))
    scores = own
    for _ in range(10):
        scores = 0.9 * spread @ scores + 0.1 * own
    torch.testing.assert_close(model(x, edges), scores)


def labelled(**masks: Tensor) -> Any:
    from torch_geometric.data import Data

    y = torch.arange(60) % 3
    x = torch.nn.functional.one_hot(y, 6).float() + 0.3 * torch.randn(60, 6, generator=torch.Generator().manual_seed(1))
    edges = torch.stack([torch.arange(60), (torch.arange(60) + 3) % 60])
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), y=y, **masks)


def test_gat_drops_attention_in_training_only_and_the_certificate_says_so() -> None:
    from pactrain.models.graph import graph_model

    model = graph_model("gat", 6, 3)
    seen: list[bool] = []
    model.first.register_forward_hook(lambda module, *_: seen.append(module.training))  # type: ignore[union-attr]
    data = labelled()
    result = pactrain.fit(model, data, budget="5 epochs")
    assert seen.count(True) == 5  # one a step; the scan, the rules and the certificate measure without dropout
    assert seen.count(False) > 5
    assert any("dropout is switched off" in note for note in result.certificate.notes)
    first, second = (model.eval()(data.x, data.edge_index) for _ in range(2))
    assert torch.equal(first, second)


def test_without_torch_geometric_the_message_has_the_pip_line() -> None:
    code = "import sys; sys.modules['torch_geometric'] = None\nimport pactrain.models.graph"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'pactrain[graph]'" in done.stderr
