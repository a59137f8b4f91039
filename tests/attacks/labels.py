"""The label that a user sees for each kind of data, as the table in docs/certificates.md.

`python -m tests.attacks.labels` writes it there again.
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from pactrain import Certificate, Prior, fit
from pactrain.certification.statement import RANK
from pactrain.problem.augmentation import augmented
from pactrain.runtime.errors import DataError
from pactrain.sklearn import PACBayesClassifier
from tests.attacks.forging import pactrain
from tests.attacks.networks import Rows, memorise, network, separable

PAGE = Path(__file__).parents[2] / "docs" / "certificates.md"
START, END = "<!-- labels -->\n", "<!-- /labels -->\n"

N, COLUMNS = 2000, 8


def rows(n: int = N) -> Rows:
    return separable(n, inputs=COLUMNS)


def fitted(model: nn.Module, data: Any, half: float, **options: Any) -> Certificate:
    return fit(model, data, bound="kl", prior_data=half, budget="20 epochs", **options).certificate


def plain(half: float) -> Certificate:
    return fitted(network(COLUMNS), rows(), half)


def from_csv(table: pd.DataFrame, half: float) -> Certificate:
    with tempfile.TemporaryDirectory() as folder:
        file, run = Path(folder) / "table.csv", Path(folder) / "run"
        table.to_csv(file, index=False)
        words = ["train", "--data", file, "--target", "kind", "--bound", "kl", "--budget", "20 epochs", "--out", run]
        assert pactrain(*words, "--model", "mlp:16", "--test-fraction", 0, "--prior-data", half) == 0
        return Certificate.read(run / "certificate.json")


def csv_of_numbers(half: float) -> Certificate:
    x, y = rows()
    table = pd.DataFrame(x.numpy(), columns=[f"x{i}" for i in range(COLUMNS)])
    return from_csv(table.assign(kind=np.where(y == 1, "left", "right")), half)


def csv_of_categories(half: float) -> Certificate:
    g = np.random.default_rng(0)
    table = pd.DataFrame({f"c{i}": g.choice(list("abcd"), N) for i in range(8)})
    return from_csv(table.assign(kind=np.where(table["c0"] < "c", "left", "right")), half)


def scikit_learn(half: float) -> Certificate:
    x, y = rows()
    made = PACBayesClassifier(lambda i, o: network(i, o), bound="kl", budget="20 epochs", prior_data=half)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Trained on clipped_cross_entropy"
        certificate: Certificate = made.fit(x.numpy(), y.numpy()).certificate_
    return certificate


class Graph(nn.Module):
    """Averages features with those of one neighbour, then a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.last = network(COLUMNS)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.last((x + x[edge_index[0]]) / 2)
        return out


def graph(half: float) -> Certificate:
    from torch_geometric.data import Data

    x, y = rows()
    edges = torch.stack([(torch.arange(N) + 2) % N, torch.arange(N)])
    return fitted(Graph(), Data(x=x, edge_index=edges, y=y), half)


def augmented_images(half: float) -> Certificate:
    x, y = separable(N, inputs=64)
    return fitted(network(64), augmented((x, y), "flip", shape=(1, 8, 8)), half)


class Mirrored(TensorDataset):
    """Rows that a user changes at random as they are read."""

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        x, y = super().__getitem__(index)
        return x + 0.1 * torch.randn_like(x), y


def changing(half: float) -> Certificate:
    return fitted(network(COLUMNS), DataLoader(Mirrored(*rows()), batch_size=200), half)


def known_by_heart(half: float, **options: Any) -> Certificate:
    g = torch.Generator().manual_seed(0)
    y = torch.arange(N) % 10  # ten classes: of two that lie apart, many a network without training is a perfect judge
    data = 4 * torch.randn(10, COLUMNS, generator=g)[y] + torch.randn(N, COLUMNS, generator=g), y
    model = network(COLUMNS, 10, seed=1)
    model.load_state_dict(memorise(network(COLUMNS, 10), data).state_dict())
    return fitted(model, data, half, **options)


def with_source(half: float) -> Certificate:
    return known_by_heart(half, prior=Prior(source="other data"))


def repeated(half: float) -> Certificate:
    x, y = rows(1000)
    return fitted(network(COLUMNS), (x.repeat(3, 1), y.repeat(3)), half)


def repeated_in_a_loader(half: float) -> Certificate:
    x, y = rows(1000)
    loader = DataLoader(TensorDataset(x.repeat(3, 1), y.repeat(3)), batch_size=500)
    return fitted(network(COLUMNS), loader, half)


CASES: dict[str, Callable[[float], Certificate]] = {
    "`(X, y)`": plain,
    "CSV, numbers only": csv_of_numbers,
    "CSV, categories only": csv_of_categories,
    "scikit-learn estimator": scikit_learn,
    "nodes of a graph": graph,
    "images, `augmented((X, y))`": augmented_images,
    "`DataLoader` that augments": changing,
    "network fine-tuned on these rows": known_by_heart,
    '… on other rows, with `Prior(source="…")`': with_source,
    "repeated rows, `(X, y)`": repeated,
    "repeated rows, `DataLoader`": repeated_in_a_loader,
}


def seen(case: Callable[[float], Certificate], half: float) -> tuple[str, str]:
    """The best label among the statements about training rows, and the reason if it is not the best there is."""
    try:
        certificate = case(half)
    except DataError:
        return "not possible", ""
    labels = [s.label for s in certificate.statements if s.bound in ("kl", "disintegrated")]
    best = max(labels, key=RANK.__getitem__)
    reasons = [c.reason for c in certificate.caveats if RANK[c.label] < RANK["certified"]]
    if best == "heuristic" and not reasons:
        return "heuristic", "vacuous"
    return best, ", ".join(r.partition(";")[0].partition(" (")[0] for r in reasons)


def table() -> str:
    """The table, measured."""
    lines = ["| data | label | with `prior_data=0.5` | what stands against more |", "|---|---|---|---|"]
    for name, case in CASES.items():
        (free, why), (half, still) = (seen(case, part) for part in (0.0, 0.5))
        reasons = list(dict.fromkeys(filter(None, (why, still))))
        lines.append(f"| {name} | {free} | {half} | {'; '.join(reasons)} |")
    return "\n".join(lines) + "\n"


def stored() -> str:
    """The table as the page has it."""
    return PAGE.read_text().partition(START)[2].partition(END)[0]


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + table() + END + rest.partition(END)[2])
