"""The paper's study of few-shot text: a linear head on a frozen encoder, 100 training rows, judged on the whole dev set.

Repeat r draws 100 rows of the training set by its number and cuts them into five; the r-th fifth is the validation set of the
search, whose winner is trained again on all 100 for as many steps as were best.  PAC-Bayes: all 100 rows, the scalar prior, nothing
else changed.  The encoder is not the paper's BERT but the one that comes with the extra `text`.
"""

import functools
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pactrain.baselines.grid_search import combinations
from pactrain.baselines.plain_training import Settings, train
from pactrain.data.glue import read_glue
from pactrain.data.text import DEFAULT, embed
from pactrain.experiments.default_rules import with_rules
from pactrain.experiments.gnn import Grid
from pactrain.experiments.paper import GLUE
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
from pactrain.models.text import text_head

ROWS, PARTS = 100, 5
PAIRS = "compared"
"""How pairs become features; a part of what identifies a run."""

GRIDS: dict[Grid, dict[str, tuple[Any, ...]]] = {
    "full": {
        "lr": (1e-1, 1e-2, 1e-3),
        "batch_size": (2, 8, 16, 32, 80),
        "dropout": (0.0, 0.5),
        "optimizer": ("sgd", "adamw"),
        "noise": (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        "weight_decay": (0.0, 1e-1, 1e-2, 1e-3, 1e-4),
    },
    "coarse": {
        "lr": (1e-1, 1e-2, 1e-3),
        "batch_size": (16,),
        "dropout": (0.0,),
        "optimizer": ("sgd", "adamw"),
        "noise": (0.0,),
        "weight_decay": (0.0, 1e-1),
    },
}
"""full: the paper's 1,800 settings.  coarse: 12 of them, every rate with both optimisers and the ends of weight decay."""


def table_glue(
    tasks: Sequence[str], *, repeats: int, grid: Grid, encoder: str, choose: Choose, carry_out: CarryOut
) -> list[CellResult]:
    """All cells.  Features are computed here, once, before any run starts."""
    cells = []
    for task in tasks:
        for repeat in range(repeats):
            _rows(task, encoder, repeat)
        _dev(task, encoder)
        cells.append(_cell(task, repeats, combinations(GRIDS[grid]), encoder))
    return compare(cells, carry_out, choose=choose)


def _cell(task: str, repeats: int, candidates: list[dict[str, Any]], encoder: str) -> Cell:
    base = {"task": task, "encoder": encoder}
    digest = _digest(task)

    def run(function: str, repeat: int, more: dict[str, Any]) -> Run:
        data = digest if function == "plain" else with_rules(digest)
        return Run(f"{__name__}:{function}", base | more, repeat, data, kind=f"{task} {function}")

    return Cell(
        (task,),
        tuple(run("pac_bayes", repeat, {}) for repeat in range(repeats)),
        tuple(tuple(run("plain", repeat, dict(c)) for c in candidates) for repeat in range(repeats)),
        "steps",
        GLUE.get(task) if encoder == DEFAULT else None,
    )


def _digest(task: str) -> str:
    texts = json.dumps([read_glue(task, "train"), read_glue(task, "dev")])
    texts += PAIRS if task == "qnli" else ""
    return hashlib.blake2b(texts.encode(), digest_size=16).hexdigest()


def _rows(task: str, encoder: str, repeat: int) -> tuple[Tensor, Tensor]:
    """Features and classes of the training rows of a repeat."""
    texts, labels = read_glue(task, "train")
    picked = np.random.default_rng(repeat).permutation(len(texts))[:ROWS]
    features = embed([texts[i] for i in picked], encoder=encoder)
    return torch.from_numpy(features), torch.tensor([labels[i] for i in picked])


@functools.cache
def _dev(task: str, encoder: str) -> tuple[Tensor, Tensor]:
    texts, labels = read_glue(task, "dev")
    return torch.from_numpy(embed(texts, encoder=encoder)), torch.tensor(labels)


def pac_bayes(*, task: str, encoder: str, seed: int) -> dict[str, Any]:
    """One repeat with `fit`, the scalar prior, and its other defaults."""
    from pactrain import fit

    x, y = _rows(task, encoder, seed)
    head = text_head(x.shape[1], 2, seed=seed)
    clock = Clock()
    result = fit(head, (x, y), prior="model", seed=seed)
    spent = clock.spent()
    return scored(head, _dev(task, encoder), spent) | {
        "train": result.metrics["train"]["accuracy"],
        "held_gamma": result.metrics["held_gamma"],
    }


def plain(
    *,
    task: str,
    encoder: str,
    lr: float,
    batch_size: int,
    dropout: float,
    optimizer: Any,
    noise: float,
    weight_decay: float,
    seed: int,
    steps: int | None = None,
) -> dict[str, Any]:
    """One repeat with plain training on four fifths, judged on the other; with `steps`, on all rows for so long."""
    x, y = _rows(task, encoder, seed)
    head = text_head(x.shape[1], 2, dropout=dropout, seed=seed)
    settings = Settings(
        optimizer, lr, weight_decay=weight_decay, noise=noise, batch_size=min(batch_size, ROWS), steps=steps
    )
    held_out = torch.zeros(len(x), dtype=torch.bool)
    if steps is None:
        held_out[torch.arange(len(x)) * PARTS // len(x) == seed % PARTS] = True
    clock = Clock()
    validation = (x[held_out], y[held_out]) if steps is None else None
    trained = train(head, (x[~held_out], y[~held_out]), settings, validation=validation, seed=seed)
    spent = clock.spent()
    return scored(head, _dev(task, encoder), spent) | {"train": trained.train["accuracy"]} | validation_metrics(trained)
