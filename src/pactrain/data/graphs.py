"""Citation graphs and graphs of the user, and splits of their nodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from pactrain.data.download import download
from pactrain.data.encoder import Encoder
from pactrain.data.graph_arrays import KEYS, MASKS, check_graph
from pactrain.data.places import data_file
from pactrain.data.splits import split_rows
from pactrain.data.task import RowLabels, Task
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Callback, silent
from pactrain.runtime.untrusted import read_arrays

HOME = "https://github.com/abojchevski/graph2gauss/raw/master/data/{}.npz"
SIZES = {
    "cora_ml": (2_995, 2_879, 7),
    "citeseer": (4_230, 602, 6),
    "dblp": (17_716, 1_639, 4),
    "pubmed": (19_717, 500, 3),
    "cora": (19_793, 8_710, 70),
}
"""Published numbers of nodes, features and classes: what a downloaded file is checked against, as no checksums are published."""

GRAPHS = tuple(SIZES)
PER_CLASS, VALIDATION = 20, 500

NodeSetting = Literal["train", "train+val"]


@dataclass(frozen=True)
class GraphTask(Task):
    """A graph whose masks say which nodes are trained on and tested on; the arrays hold these nodes' features and classes."""

    graph: Any = None

    @property
    def train(self) -> Any:
        """The graph: `fit` trains on its train_mask."""
        return self.graph

    @property
    def test(self) -> Any:
        """The graph, if it has test nodes."""
        return None if self.x_test is None else self.graph


def load_graph(name: str, root: str | Path | None = None) -> Any:
    """A torch-geometric `Data` from the raw file of `CitationFull`, found as all data is, or downloaded."""
    if name not in GRAPHS:
        raise DataError(f"there is no graph {name!r}; use one of {', '.join(GRAPHS)}")
    try:
        path = data_file(f"{name}.npz", root)
    except DataError:
        path = fetch_graph(name)
    return read_graph(path)


def fetch_graph(name: str, into: str | Path | None = None, *, progress: Callback = silent) -> Path:
    """Download a graph into a folder, the cache by default, and keep it if it is of the published size."""
    path = download(HOME.format(name), f"{name}.npz", into=into, progress=progress)
    data = read_graph(path)
    found = (*data.x.shape, int(data.y.max()) + 1)
    if found != SIZES[name]:
        path.unlink()
        raise DataError(
            f"the downloaded {name} has {found} nodes, features and classes and not {SIZES[name]}; it was removed"
        )
    return path


def read_graph(path: str | Path) -> Any:
    """A graph from a file in the layout of `CitationFull`, through torch-geometric's own reader.

    `adj_*` and `attr_*` are sparse matrices (CSR); `labels` are classes from 0 on, -1 where unknown, and may be missing
    altogether; `train_mask`, `val_mask` and `test_mask` are optional.
    """
    try:
        from torch_geometric.io.npz import parse_npz
    except ImportError as error:
        raise DataError("graphs need torch-geometric: pip install 'pactrain[graph]'") from error
    arrays = read_arrays(path, (*KEYS, *MASKS))
    check_graph(arrays, path)
    data = parse_npz(arrays)
    for name in MASKS:
        if name in arrays:
            setattr(data, name, torch.from_numpy(arrays[name].astype(bool)))
    return data


def split_nodes(labels: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Node numbers for training (20 a class), validation (500) and test (the rest), chosen by the seed."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    ordered = labels[order]
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for c in labels.unique():
        chosen[(ordered == c).nonzero()[:PER_CLASS, 0]] = True
    rest = order[~chosen]
    return order[chosen], rest[:VALIDATION], rest[VALIDATION:]


def with_masks(data: Any, **nodes_of: Tensor) -> Any:
    """A copy of a graph with masks of these names that name these nodes."""
    copy = data.clone()
    for name, nodes in nodes_of.items():
        mask = torch.zeros(len(data.x), dtype=torch.bool)
        mask[nodes] = True
        setattr(copy, name, mask)
    return copy


def with_split(data: Any, seed: int, *, nodes: NodeSetting = "train+val") -> Any:
    """A copy of a graph with the masks of the paper's split; "train+val" trains on the validation nodes too."""
    train, validation, test = split_nodes(data.y, seed)
    if nodes == "train":
        return with_masks(data, train_mask=train, val_mask=validation, test_mask=test)
    return with_masks(data, train_mask=torch.cat([train, validation]), test_mask=test)


def load_graph_task(
    data: str, *, test_fraction: float | None, file_fraction: float, seed: int, root: str | Path | None
) -> GraphTask:
    """`graph:NAME` with the paper's split, or a file with its own masks, or with a part of its labelled nodes held out."""
    named = data.startswith("graph:")
    graph = load_graph(data.removeprefix("graph:"), root) if named else read_graph(data)
    if hasattr(graph, "train_mask") or hasattr(graph, "test_mask"):
        if test_fraction is not None:
            raise DataError(
                f"{data} says in its masks which nodes are for the test; --test-fraction does not go with it"
            )
    elif named and test_fraction is None:
        graph = with_split(graph, seed)
    else:
        known = (graph.y >= 0).nonzero()[:, 0].numpy()
        fraction = file_fraction if test_fraction is None else test_fraction
        train, test = split_rows(len(known), graph.y.numpy()[known], fraction, seed)
        train_nodes, test_nodes = (torch.from_numpy(known[rows]) for rows in (train, test))
        graph = with_masks(graph, train_mask=train_nodes, test_mask=test_nodes)
    return _task(data if named else Path(data).name, graph)


def _task(name: str, graph: Any) -> GraphTask:
    from pactrain.problem.graph_nodes import nodes_of

    parts: list[NDArray[Any] | None] = []
    labels: RowLabels | None = None
    for role in ("training", "test"):
        if role == "test" and not (hasattr(graph, "test_mask") and bool(graph.test_mask.any())):
            parts += [None, None]
            continue
        batch = nodes_of(graph, role, device=torch.device("cpu"), dtype=torch.float32)
        parts += [batch.x[batch.nodes].numpy(), batch.y.numpy()]
        labels = RowLabels("node", batch.nodes.numpy())
    classes = tuple(map(str, range(int(graph.y.max()) + 1)))
    if len(classes) < 2:
        raise DataError(f"{name}: the labels hold fewer than two classes")
    encoder = Encoder("label", "classification", (), (), (), classes, 0.0, 1.0, node_features=graph.x.shape[1])
    x_train, y_train, x_test, y_test = parts
    assert x_train is not None
    assert y_train is not None
    return GraphTask(name, encoder, x_train, y_train, x_test, y_test, labels=labels, graph=graph)
