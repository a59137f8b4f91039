"""Predictions: inputs of any type, answers in the target's own words and units, bounded memory."""

from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.runs import prediction as module
from pactrain.runtime.errors import DataError, PactrainError

G = torch.Generator().manual_seed(0)
X = torch.randn(60, 3, generator=G)
CLASSES = (X[:, 0] > 0).long()
SHORT = "3 epochs"


@pytest.fixture(scope="module")
def classifier() -> pactrain.Result:
    return pactrain.fit(nn.Linear(3, 2), (X, CLASSES), budget=SHORT)


@pytest.mark.parametrize(
    "rows",
    [
        X,
        X.double(),
        X.bfloat16().float().requires_grad_(),
        X.numpy(),
        X.numpy().astype(">f8"),
        X.numpy().astype(object),
        X.numpy().tolist(),
        pd.DataFrame(X.numpy()),
        polars.DataFrame(X.numpy()),
    ],
    ids=lambda rows: f"{type(rows).__module__}.{type(rows).__name__}.{getattr(rows, 'dtype', '')}",
)
def test_inputs_of_any_type(classifier: pactrain.Result, rows: Any) -> None:
    found = classifier.predict(rows)
    with torch.no_grad():
        chances = classifier.model(X).double().softmax(1).numpy()
    assert found.probabilities is not None
    near = 2e-2 if isinstance(rows, Tensor) and rows.requires_grad else 1e-6
    np.testing.assert_allclose(found.probabilities, chances, atol=near)
    assert found.values.shape == (60,)
    assert found.spread.shape == (60, 2)


def test_whole_numbers_go_in_as_the_network_takes_them() -> None:
    pixels = torch.randint(0, 255, (40, 3), generator=G)
    amounts = pactrain.fit(nn.Linear(3, 1), (pixels.float() / 255, pixels[:, 0] / 255), budget=SHORT)
    assert amounts.predict(pixels.numpy()).values.shape == (40,)
    words = torch.randint(0, 9, (40, 5), generator=G)
    network = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 2))
    texts = pactrain.fit(network, (words, (words[:, 0] > 4).long()), budget=SHORT)
    expected = texts.predict(words.numpy()).probabilities
    for kind in ("uint8", "int16", "int32", "uint16"):
        np.testing.assert_array_equal(texts.predict(words.numpy().astype(kind)).probabilities, expected)


def test_few_rows_at_a_time_give_the_same(classifier: pactrain.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = classifier.predict(X)
    largest = []
    real = classifier.model.forward
    monkeypatch.setattr(classifier.model, "forward", lambda x: largest.append(len(x)) or real(x))  # type: ignore[func-returns-value]
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 21)
    parts = classifier.predict(X)
    assert max(largest) == 7
    np.testing.assert_allclose(parts.probabilities, whole.probabilities, rtol=1e-6)  # type: ignore[arg-type]
    np.testing.assert_allclose(parts.spread, whole.spread, rtol=1e-6)


def test_many_rows_of_a_wide_network_go_through_it_in_pieces(classifier: pactrain.Result) -> None:
    largest = 0

    def count(_: nn.Module, inputs: tuple[Tensor]) -> None:
        nonlocal largest
        largest = max(largest, len(inputs[0]))

    with_hook = classifier.model.register_forward_pre_hook(count)
    assert len(classifier.predict(torch.zeros(5000, 3), draws=2).values) == 5000
    with_hook.remove()
    assert largest == 1024


class Two(nn.Module):
    """Two named inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Scores."""
        scores: Tensor = self.left(a) - self.right(b)
        return scores


def test_several_inputs_by_place_and_by_name() -> None:
    result = pactrain.fit(Two(), (X, -X, CLASSES), budget=SHORT)
    by_place, by_name = result.predict((X, -X)), result.predict({"a": X.numpy(), "b": -X.numpy()})
    np.testing.assert_array_equal(by_place.probabilities, by_name.probabilities)
    with pytest.raises(DataError, match=r"have \[60, 5\] rows"):
        result.predict((X, X[:5]))


def test_amounts_and_their_spread() -> None:
    result = pactrain.fit(nn.Linear(3, 2), (X, X[:, :2]), budget=SHORT)
    found = result.predict(X, draws=200)
    std = result.posterior.predict(X, draws=200).std
    with torch.no_grad():
        np.testing.assert_allclose(found.values, result.model(X), rtol=1e-5)
    np.testing.assert_allclose(found.spread, std, rtol=1e-9)
    assert found.probabilities is None


def test_rows_that_cannot_be_predicted_for(classifier: pactrain.Result) -> None:
    with pytest.raises(DataError, match="row 2 holds NaN, infinity"):
        classifier.predict([[1.0, 2, 3], [np.nan, 1, 2]])
    with pytest.raises(DataError, match="None, without rows"):
        classifier.predict(None)
    with pytest.raises(DataError, match="cannot be read as numbers"):
        classifier.predict([["a", "b", "c"]])
    with pytest.raises(DataError, match="there must be some"):
        classifier.predict(X[:0])
    with pytest.raises(PactrainError, match=r"pass test=\(X, y\) or calibration="):
        classifier.predict(X, coverage=0.9)


def test_one_logit_and_tokens() -> None:
    network: nn.Module = nn.Linear(3, 1)
    yes_or_no = pactrain.fit(network, (X, CLASSES), budget=SHORT).predict(X)
    with torch.no_grad():
        np.testing.assert_array_equal(yes_or_no.values, (network(X)[:, 0] > 0).numpy())
    words = torch.randint(0, 9, (40, 5), generator=G)
    network = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 7))  # one class per token, in the last dimension
    tokens = pactrain.fit(network, (words, words % 7), budget=SHORT).predict(words)
    assert tokens.values.shape == (40, 5)
    assert tokens.probabilities is not None
    np.testing.assert_allclose(tokens.probabilities.sum(-1), 1)


def test_inputs_that_the_network_does_not_take(classifier: pactrain.Result) -> None:
    for rows, words in (
        (X[0], r"of shape \(3,\) \(rows first, a single one as X\[None\]\): 3 rows gave 2 answers"),
        (X[:, :2], r"of shape \(60, 2\) .* cannot be multiplied"),
        (X.to_sparse(), "sparse, nested, quantised or meta tensor"),
        (torch.utils.data.TensorDataset(X, CLASSES), "are a TensorDataset; pass the inputs alone"),
        (torch.utils.data.TensorDataset(X), "are a TensorDataset; pass the inputs alone"),
        (torch.utils.data.DataLoader(X), "are a DataLoader; pass the inputs alone"),  # type: ignore[arg-type]
    ):
        with pytest.raises(DataError, match=words):
            classifier.predict(rows)
