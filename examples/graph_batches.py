"""Mini-batches of a graph: some labelled nodes at a time, with all nodes within two hops, as NeighborLoader makes them.

torch-geometric's own NeighborLoader needs pyg-lib or torch-sparse, which have no ready builds for every torch.
"""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import k_hop_subgraph

import pactrain

torch.manual_seed(0)
nodes, group = (
    600,
    torch.arange(600) % 3,
)  # friends are mostly of one group; two features, hardly different, are known of each
pairs = torch.randint(0, nodes, (2, 12000))
edges = pairs[:, (group[pairs[0]] == group[pairs[1]]) | (torch.rand(12000) < 0.1)]
edges = torch.cat([edges, edges.flip(0)], 1)
x = torch.randn(nodes, 2) + F.one_hot(group, 3)[:, :2]
train, test = torch.randperm(nodes).split([120, 480])


def batch(labelled):
    """The labelled nodes' surroundings, where they stand in them, and their classes."""
    around, inside, where, _ = k_hop_subgraph(labelled, 2, edges, relabel_nodes=True, num_nodes=nodes)
    return x[around], inside, where, group[labelled]


def loss(predict, batch):
    """One loss for each labelled node."""
    features, inside, where, classes = batch
    return F.cross_entropy(predict(features, inside)[where], classes, reduction="none")


model = GraphSAGE(2, 32, num_layers=2, out_channels=3)
doubts = ["nodes of one graph are not independent examples"]
pactrain.fit(model, [batch(part) for part in train.split(40)], loss=loss, caveats=doubts, budget="60 epochs")
right = model(x, edges)[test].argmax(1) == group[test]
print(f"3 batches of 40 labelled nodes, accuracy on the other {len(test)}: {right.float().mean():.3f}")
