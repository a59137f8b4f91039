"""Rows that are not independent draws, or that had a say in how they are encoded."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pactrain import Certificate, Posterior, Prior, certify, fit
from pactrain.certification.data_checks import copied_rows, shared_rows
from pactrain.problem.batches import TensorBatches
from pactrain.sklearn import PACBayesClassifier
from tests.attacks.forging import pactrain
from tests.attacks.networks import NOTHING, Rows, coin_flips, headline, labels_of, network, separable

FIXED = Prior(std=0.1, learn=False)

# -- copies ------------------------------------------------------------------------------------------------------------


def repeated(times: int = 200) -> Rows:
    x, y = coin_flips(25)
    return x.repeat(times, 1), y.repeat(times)


def test_copies_in_arrays_count_once() -> None:
    certificate = fit(network(), repeated(), bound="kl", budget="10 epochs").certificate
    assert certificate.n == 25
    assert {s.inputs["n"] for s in certificate.statements if s.bound in ("kl", "disintegrated")} == {25}
    assert headline(certificate) == NOTHING
    assert "4,975 training rows are copies of others" in str(certificate)


def test_copies_in_a_loader_take_the_label() -> None:
    loader = DataLoader(TensorDataset(*repeated()), batch_size=250)
    certificate = fit(network(), loader, bound="kl", budget="10 epochs").certificate
    assert min(s.value for s in certificate.statements if s.bound == "kl") < 0.15  # what would have been certified
    assert labels_of(certificate) == {"heuristic"}
    assert headline(certificate) == NOTHING
    assert "Not certified: 4,975 rows are copies of others" in str(certificate)


def test_copies_in_the_test_set_count_once() -> None:
    x, y = coin_flips(325)
    right = torch.arange(25).repeat(200)
    model = network()
    fitted = fit(model, (x[25:], y[25:]), budget="3 epochs").posterior
    best = fitted.model(x[:25]).argmax(1)  # 25 test rows that the network happens to have right, 200 times each
    certificate = certify(fitted, (x[25:], y[25:]), test=(x[right], best[right]), draws=5)
    statement = next(s for s in certificate.statements if s.bound == "test set")
    assert statement.inputs["n"] == 25
    assert "4,975 test rows are copies of others" in str(certificate)


def test_rows_of_a_categorical_table_may_repeat() -> None:
    g = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 3, (2000, 4), generator=g)
    x = nn.functional.one_hot(codes, 3).flatten(1).float()
    assert len(x.unique(dim=0)) == 81  # nearly every row occurs many times
    y = (codes[:, 0] == 0).long()
    certificate = fit(network(12), (x, y), bound="kl", prior_data=0.5, budget="20 epochs").certificate
    assert certificate.n == 1000
    assert not certificate.caveats
    assert "certified" in labels_of(certificate, "kl")


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_copies_of_narrow_rows_are_seen(columns: int) -> None:
    x, y = repeated()
    certificate = certify(Posterior(network(columns), FIXED), (x[:, :columns], y), draws=5)
    assert certificate.n == 25


def test_few_repeats_among_many_categories_are_chance() -> None:
    """Eight letters in each of six columns: of 1,200 rows about two are alike by chance, of 5,000 nearly fifty."""
    for n in (1200, 5000):
        alike = 0
        for seed in range(6 if n == 1200 else 1):
            codes = torch.randint(0, 8, (n, 6), generator=torch.Generator().manual_seed(seed))
            x, y = nn.functional.one_hot(codes, 8).flatten(1).float(), (codes[:, 0] < 4).long()
            alike += n - len(x.unique(dim=0))
            assert copied_rows(TensorBatches((x, y), n)) == []
            assert shared_rows(TensorBatches((x[::2], y[::2]), n), TensorBatches((x[1::2], y[1::2]), n)) == 0
        assert alike > 5
    few = torch.arange(1200)
    five = TensorBatches((x[few].repeat(5, 1), y[few].repeat(5)), 100)
    assert len(copied_rows(five)) == 6000 - len(x[few].unique(dim=0))  # whole copies are seen here, too


def test_rows_on_both_sides_of_the_split_take_the_label() -> None:
    x, y = separable(200, inputs=4)
    twice = torch.arange(200).repeat(2)
    certificate = fit(network(4), (x[twice], y[twice]), bound="kl", prior_data=0.5, budget="5 epochs").certificate
    assert headline(certificate) == NOTHING
    assert any("both in the prior's part and in the counted part" in c.reason for c in certificate.caveats)


# -- dependent and changing rows -----------------------------------------------------------------------------------------


class Jittered(Dataset[tuple[Tensor, Tensor]]):
    """Rows that are augmented anew each time they are read."""

    x, y = separable(200, inputs=4)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + 0.1 * torch.randn(4), self.y[index]


class Graph(nn.Module):
    """Averages features over neighbours, then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.last = network(4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.last(x.index_add(0, edge_index[1], x[edge_index[0]]) / 2)
        return out


def graph() -> Any:
    data = pytest.importorskip("torch_geometric.data")
    x, y = separable(300, inputs=4)
    edges = torch.stack([torch.arange(300), (torch.arange(300) + 2) % 300])
    return data.Data(x=x, edge_index=edges, y=y, train_mask=torch.arange(300) < 200, test_mask=torch.arange(300) >= 200)


def test_changing_rows_claim_nothing() -> None:
    certificate = fit(network(4), DataLoader(Jittered(), batch_size=50), bound="kl", prior=FIXED, budget="5 epochs")
    assert_silent(certificate.certificate, "changes from one reading to the next")


def test_nodes_of_a_graph_claim_nothing_even_those_held_out() -> None:
    data = graph()
    certificate = fit(Graph(), data, test=data, bound="kl", prior=FIXED, budget="5 epochs").certificate
    assert labels_of(certificate, "test set") == {"heuristic"}
    assert_silent(certificate, "nodes of one graph")


def assert_silent(certificate: Certificate, reason: str) -> None:
    """Nothing is certified, or estimated, and what is printed claims nothing."""
    assert labels_of(certificate) == {"heuristic"}
    assert headline(certificate) == NOTHING
    assert "at most" not in str(certificate)
    assert any(reason in c.reason and f"Not certified: {c.reason}" in str(certificate) for c in certificate.caveats)


# -- encoders --------------------------------------------------------------------------------------------------------------


def categories(path: Path, n: int = 1200) -> Path:
    """A table without a number: six columns of letters, the first of which tells the class in nine cases of ten."""
    g = np.random.default_rng(0)
    table = pd.DataFrame({f"c{i}": g.choice(list("abcdefgh"), n) for i in range(6)})
    table["kind"] = np.where((table["c0"] < "e") ^ (g.random(n) < 0.1), "left", "right")
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("half", [False, True])
def test_an_encoder_fitted_on_counted_rows_takes_the_label(half: bool, tmp_path: Path) -> None:
    words: list[Any] = ["train", "--data", categories(tmp_path / "c.csv"), "--target", "kind", "--model", "mlp:16"]
    words += ["--bound", "kl", "--budget", "20 epochs", "--test-fraction", "0", "--out", tmp_path / "run"]
    assert pactrain(*words, *(["--prior-data", "0.5"] if half else [])) == 0
    certificate = Certificate.read(tmp_path / "run" / "certificate.json")
    encoded = [c for c in certificate.caveats if "how columns are encoded" in c.reason]
    assert bool(encoded) != half
    assert ("certified" in labels_of(certificate, "kl")) == half
    if not half:
        assert f"Only estimated: {encoded[0].reason}" in str(certificate)
        assert "[certified]" not in str(certificate)


@pytest.mark.filterwarnings("ignore:Trained on clipped_cross_entropy")
@pytest.mark.filterwarnings("ignore:With so few rows")
@pytest.mark.parametrize("half", [0.0, 0.5])
def test_a_scaler_fitted_on_counted_rows_takes_the_label(half: float) -> None:
    x, y = separable(800, inputs=4)
    made = PACBayesClassifier(
        bound="kl", budget="20 epochs", prior_data=half, model=lambda i, o: network(i, o, width=16)
    )
    certificate = made.fit(x.numpy(), y.numpy()).certificate_
    assert ("certified" in labels_of(certificate, "kl", "disintegrated")) == bool(half)
    assert any("standardised" in c.reason for c in certificate.caveats) != bool(half)
