"""Nodes of a citation network with a GCN: one batch is the whole graph, and the loss picks the labelled nodes."""

import torch
import torch.nn.functional as F

import pactrain
from pactrain.data.graphs import load_graph, split_nodes
from pactrain.models.graph import GCN

graph = load_graph("cora_ml")  # cora_ml.npz in $PACTRAIN_DATA
train, _, test = split_nodes(graph.y, seed=0)
torch.manual_seed(0)
words, scales, _ = torch.pca_lowrank(graph.x, 64)  # 2,879 words to 64 features, without looking at a label
x = words * scales * len(words) ** 0.5 / scales.mean()
model = GCN(64, int(graph.y.max()) + 1)


def loss(predict, batch):
    """One loss for each labelled node."""
    features, edges, nodes, labels = batch
    return F.cross_entropy(predict(features, edges)[nodes], labels, reduction="none")


result = pactrain.fit(model, [(x, graph.edge_index, train, graph.y[train])], loss=loss, budget="60 epochs")
model.eval()
right = model(x, graph.edge_index)[test].argmax(1) == graph.y[test]
print(f"{len(train)} labelled nodes, accuracy on the other {len(test)}: {right.float().mean():.3f}")
print(result.certificate)
