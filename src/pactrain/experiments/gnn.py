"""The paper's study of graph networks: node classification on citation graphs, the same splits for both methods.

ERM: AdamW for as many epochs as `fit` takes, early-stopped and chosen on the validation nodes; where validation nodes may be trained
on, trained again on all of them with the chosen settings for the chosen number of epochs.
"""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any, Literal

from torch import nn

from pactrain.baselines.grid_search import combinations
from pactrain.baselines.plain_training import Settings, train
from pactrain.data.graphs import NodeSetting, load_graph, with_split
from pactrain.data.places import data_file
from pactrain.experiments.default_rules import with_rules
from pactrain.experiments.paper import GNN
from pactrain.experiments.plan import Run
from pactrain.experiments.table_cells import (
    CarryOut,
    Cell,
    CellResult,
    Choose,
    Clock,
    compare,
    scored,
    validation_metrics,
)
from pactrain.runtime.errors import DataError

Grid = Literal["full", "coarse"]

GRIDS: dict[Grid, dict[str, tuple[float, ...]]] = {
    "full": {
        "lr": (1e-3, 5e-3, 1e-2),
        "weight_decay": (0.0, 1e-4, 1e-3, 1e-2),
        "noise": (0.0, 1e-3, 5e-3, 1e-2),
        "dropout": (0.0, 0.4, 0.8),
    },
    "coarse": {"lr": (1e-3, 1e-2), "weight_decay": (0.0, 1e-2), "noise": (0.0,), "dropout": (0.0, 0.8)},
}
"""full: the paper's 144 settings.  coarse: 8 of them, the ends of the rate, of weight decay and of dropout, no noise."""

MEASURE_EVERY = 5
"""Epochs between two measurements on the validation nodes: the best epoch is often among the first fifty."""


def table_gnn(
    graphs: Sequence[str],
    models: Sequence[str],
    *,
    splits: int,
    grid: Grid,
    nodes: NodeSetting,
    choose: Choose,
    carry_out: CarryOut,
    every: bool = False,
) -> list[CellResult]:
    """All cells.  `every` trains again with every setting, not only the chosen ones, where validation nodes are trained on."""
    digests = {graph: digest_of(graph) for graph in graphs}
    cells = [
        _cell(graph, model, splits, combinations(GRIDS[grid]), nodes, digests[graph])
        for graph, model in itertools.product(graphs, models)
    ]
    return compare(cells, carry_out, choose=choose, every=every)


def _cell(
    graph: str, model: str, splits: int, candidates: list[dict[str, float]], nodes: NodeSetting, digest: str
) -> Cell:
    base = {"graph": graph, "model": model}

    def run(function: str, split: int, more: dict[str, Any]) -> Run:
        data = digest if function == "plain" else with_rules(digest)
        return Run(f"{__name__}:{function}", base | more, split, data, kind=f"{graph} {model} {function}")

    return Cell(
        (graph, model),
        tuple(run("pac_bayes", split, {"nodes": nodes}) for split in range(splits)),
        tuple(tuple(run("plain", split, dict(c)) for c in candidates) for split in range(splits)),
        None if nodes == "train" else "epochs",
        GNN.get((graph, model)) if nodes == "train+val" else None,  # the paper has no numbers for the other setting
    )


def digest_of(graph: str) -> str:
    """A fingerprint of a graph's file; it is downloaded if it is not there yet."""
    try:
        path = data_file(f"{graph}.npz", None)
    except DataError:
        load_graph(graph)
        path = data_file(f"{graph}.npz", None)
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def pac_bayes(*, graph: str, model: str, nodes: NodeSetting, seed: int) -> dict[str, Any]:
    """One split with `fit` and its defaults."""
    from pactrain import fit

    data = with_split(load_graph(graph), seed, nodes=nodes)
    network = _network(model, data, seed)
    clock = Clock()
    result = fit(network, data, seed=seed)
    return scored(network, data, clock.spent()) | {
        "train": result.metrics["train"]["accuracy"],
        "steps": result.metrics["steps"],
        "held_gamma": result.metrics["held_gamma"],
        "learning_rate": result.metrics["learning_rate"],
    }


def plain(
    *,
    graph: str,
    model: str,
    lr: float,
    weight_decay: float,
    noise: float,
    dropout: float,
    seed: int,
    epochs: int | None = None,
) -> dict[str, Any]:
    """One split with AdamW: on the training nodes, judged on the validation nodes; with `epochs`, on both for so long."""
    data = with_split(load_graph(graph), seed, nodes="train" if epochs is None else "train+val")
    network = _network(model, data, seed)
    settings = Settings("adamw", lr, weight_decay=weight_decay, noise=noise, dropout=dropout, epochs=epochs)
    clock = Clock()
    trained = train(
        network, data, settings, validation=data if epochs is None else None, measure_every=MEASURE_EVERY, seed=seed
    )
    return scored(network, data, clock.spent()) | {"train": trained.train["accuracy"]} | validation_metrics(trained)


def _network(model: str, data: Any, seed: int) -> nn.Module:
    from pactrain.models.graph import graph_model

    return graph_model(model, data.x.shape[1], int(data.y.max()) + 1, seed=seed)
