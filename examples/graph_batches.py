"""Mini-batches of a graph by torch-geometric's NeighborLoader: labelled nodes, 10 neighbours of each, 10 of each of those."""

import torch
import torch.nn.functional as F
from torch_geometric import typing, utils
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GraphSAGE
from torch_geometric.sampler import SamplerOutput

import pactrain
from pactrain.certification.before_training import Described

torch.manual_seed(0)
group = torch.arange(600) // 200  # friends are mostly of one group; two features, hardly different, are known of each
edges = utils.stochastic_blockmodel_graph([200] * 3, 0.06 * torch.eye(3) + 0.004)
graph = Data(torch.randn(600, 2) + F.one_hot(group, 3)[:, :2], edges, y=group)
train, test = torch.randperm(600).split([120, 480])


class Neighbours:
    """The sampling that NeighborLoader leaves to pyg-lib or torch-sparse, for machines that have neither."""

    edge_permutation = None

    def sample_from_nodes(self, index):
        few = edges[:, torch.randperm(edges.shape[1])]
        few = few[:, few[1].argsort(stable=True)]
        few = few[:, torch.arange(few.shape[1]) - torch.searchsorted(few[1], few[1]) < 10]  # 10 of those into each node
        around, *_, inside = utils.k_hop_subgraph(index.node, 2, few, num_nodes=600)
        nodes = torch.cat([index.node, around[~torch.isin(around, index.node)]])  # the labelled ones come first
        row, col = torch.zeros(600, dtype=torch.long).index_copy(0, nodes, torch.arange(len(nodes)))[few[:, inside]]
        return SamplerOutput(nodes, row, col, edge=None, metadata=(index.input_id, None))


def loss(predict, batch):  # one for each labelled node; their neighbours are only looked at
    return F.cross_entropy(predict(batch.x, batch.edge_index), batch.y, reduction="none")[: batch.batch_size]


own = None if typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE else Neighbours()
loader = NeighborLoader(graph, [10, 10], train, neighbor_sampler=own, batch_size=40, shuffle=True)
model = GraphSAGE(2, 32, num_layers=2, out_channels=3)
doubts = ["nodes of one graph are not independent examples, and each pass over them draws other neighbours"]
pactrain.fit(model, Described(loader, caveats=doubts), loss=loss, budget="30 epochs")
right = model(graph.x, graph.edge_index)[test].argmax(1) == group[test]
print(f"{len(loader)} batches of 40 labelled nodes, accuracy on the other {len(test)}: {right.float().mean():.3f}")
