"""Measured risks against the same draws in float64, and which networks may have noise for each example."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.bounds.betting import Histogram
from pactrain.certification.measures import (
    CROSS_ENTROPY,
    ERROR,
    Measure,
    measures_for,
)
from pactrain.certification.risks import Risks, affordable_draws, first_measured, measure_risks
from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.losses import CallableLoss
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.events import Event, silent
from tests.certification.small_posteriors import Product, mlp, noise, noisy_posterior
from tests.oracle.networks import Rows, measure, network_of

CE, CPU = LOSSES["cross_entropy"], torch.device("cpu")
MEASURES = measures_for(CE, 2)


# -- numbers -----------------------------------------------------------------------------------------------------------

CASES = [  # network, rows, values asked for, values, progress
    (mlp, 75, 150, 150, [75, 150]), (mlp, 75, 10, 75, [10]), (lambda: mlp(bias=False), 40, 41, 80, [40, 41]),
    (Product, 75, 5, 225 / 32, [2, 4, 5]), (Product, 64, 2, 2, [2]), (Product, 33, 1, 1, [1]), (Product, 20, 1, 1, [1]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "n", "asked", "values", "progress"), CASES)
def test_the_same_draws_give_the_same_risks(
    build: Callable[[], nn.Module], n: int, asked: int, values: float, progress: list[int]
) -> None:
    torch.manual_seed(1)
    posterior, (x, y) = noisy_posterior(build()), noise(n)
    events: list[Event] = []
    risks = measure_risks(
        posterior, TensorBatches((x, y), 16), CE, MEASURES, values=asked, seed=7, progress=events.append
    )
    network = network_of(copy.deepcopy(posterior.model).double(), "layer")
    mean = torch.cat([p.detach().double().reshape(-1) for p in posterior.means()]).numpy()
    log_std = posterior.log_std.detach().double().numpy()
    wanted = measure(network, Rows((x.double(),), y), mean, log_std, draws=asked, seed=7, unit=1.0)
    assert wanted.losses.error is not None
    assert (risks.values, risks.n, risks.scheme) == (values, n, wanted.scheme)
    assert risks.loss == pytest.approx(wanted.losses.loss.mean(), rel=1e-5)
    bins, counts = wanted.histogram(wanted.losses.error, whole=True)
    assert risks.histograms[ERROR, 0.0, 0.0] == Histogram(bins, counts)
    smooth, limit = -np.log(0.95 * np.exp(-wanted.losses.loss) + 0.025), math.log(40)
    square = (-math.log(0.5) - 0.5) / 0.5
    parts = (smooth / limit + square * (smooth / limit) ** 2) / (1 + square)
    found, exact = risks.histograms[CROSS_ENTROPY, 0.05, 0.5], parts.mean()
    assert found.bins == 1000
    assert exact <= found.mean * found.number / risks.values <= exact + max(1.0, found.number / risks.values) / 1000
    assert events == [Event("certify", step, asked) for step in progress]


def test_batches_of_a_loader_are_chunks_as_they_come() -> None:
    x, y = noise(50)
    batches = LoaderBatches([(x[:40], y[:40]), (x[40:], y[40:])], CPU)
    risks = measure_risks(noisy_posterior(Product()), batches, CE, MEASURES, values=2, seed=0, progress=silent)
    assert (risks.values, risks.n, risks.scheme) == (2.5, 50, "chunks")  # 100 examples, 40 of which make a value
    assert len(first_measured(noisy_posterior(Product()), batches, CE)[0]) == 40
    table = TensorBatches((x, y), 10)
    assert len(first_measured(noisy_posterior(Product()), table, CE)[0]) == 32
    assert len(first_measured(noisy_posterior(mlp()), table, CE)[0]) == 50


def test_what_a_loss_does_not_have_is_not_measured() -> None:
    def custom(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch[0]), batch[1], reduction="none")

    posterior, (x, y) = noisy_posterior(mlp()), noise(30)
    bare = measure_risks(
        posterior, TensorBatches((x, y), 30), CallableLoss.of(custom), [], values=1, seed=0, progress=silent
    )
    whole = measure_risks(posterior, TensorBatches((x, y), 30), CE, MEASURES, values=1, seed=0, progress=silent)
    assert bare == Risks(whole.loss, {}, 30, 30, "examples")
    assert measures_for(CallableLoss.of(custom), 2) == []


def test_values_between_the_bins_are_rounded_up() -> None:
    measures = [
        Measure("a", lambda losses, _: torch.full_like(losses, 1e-4)),
        Measure("b", lambda losses, _: losses * 0),
    ]
    data = TensorBatches(noise(64), 64)
    for build in (mlp, Product):
        found = measure_risks(
            noisy_posterior(build()), data, CE, measures, values=1, seed=0, progress=silent
        ).histograms
        number = 64 if build is mlp else 2
        assert found["a", 0.0, 0.0] == Histogram(1000, {1: number})
        assert found["b", 0.0, 0.0] == Histogram(1000, {0: number})


def test_large_chunks_are_rounded_like_other_values() -> None:
    x, y = noise(1500)
    batches = LoaderBatches([(x, y)], CPU)
    risks = measure_risks(noisy_posterior(Product()), batches, CE, MEASURES, values=1, seed=0, progress=silent)
    found = risks.histograms[ERROR, 0.0, 0.0]
    assert (found.bins, found.number) == (1000, 1)


# -- how many draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "n", "epochs", "steps", "draws"),
    [
        (mlp, 60, 3, 9, 3_000), (mlp, 500, 3, 9, 20_000), (mlp, 20_001, 3, 9, 20_001), (mlp, 20_001, 11, 9, 40_002), (mlp, 100_000, 8, 9, 200_000),
        (mlp, 100_000, 20, 9, 300_000), (Product, 60, 8, 9, 500), (Product, 80_000, 8, 9, 250),
        (Product, 952_381, 8, 9, 20), (Product, 909_090, 8, 9, 22), (Product, 10**7, 8, 9, 20),
    ],
)  # fmt: skip
def test_draws_of_a_table(build: Callable[[], nn.Module], n: int, epochs: int, steps: int, draws: int) -> None:
    data = TensorBatches(noise(40), 40)
    assert affordable_draws(noisy_posterior(build()), data, CE, n, epochs=epochs, steps=steps) == draws


def test_draws_of_a_convolution_are_fewer() -> None:
    model = nn.Sequential(nn.Unflatten(1, (2, 1, 1)), nn.Conv2d(2, 100_000, 1), nn.Conv2d(100_000, 1, 1), nn.Flatten())
    model.append(nn.Linear(1, 2))
    data = TensorBatches(noise(40), 40)
    posterior = noisy_posterior(model, std=0.01)
    found = [affordable_draws(posterior, data, CE, 400, epochs=epochs, steps=9) for epochs in (0, 1, 8, 60, 100)]
    assert found == [
        1_000,
        1_000,
        1_000,
        7_200,
        10_000,
    ]  # some seconds at least, then what training costs, then a minute's worth


def test_draws_of_batches() -> None:
    data = LoaderBatches([noise(40)], CPU)

    def draws(build: Callable[[], nn.Module], steps: int) -> int:
        return affordable_draws(noisy_posterior(build()), data, CE, 40, epochs=8, steps=steps)

    assert [draws(Product, steps) for steps in (50, 100, 1000, 1664, 1667, 9000)] == [20, 30, 300, 499, 500, 500]
    assert draws(mlp, 50) == 2_000


def test_the_mode_of_the_network_does_not_matter() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    posterior = noisy_posterior(model)
    model.train()
    assert affordable_draws(posterior, TensorBatches(noise(40), 40), CE, 40, epochs=8, steps=9) == 2_000
    assert model.training
