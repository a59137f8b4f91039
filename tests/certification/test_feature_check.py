"""What can be read out of a network's features."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pactrain import Posterior
from pactrain.certification.feature_check import FEWEST, RIDGE, clearly_better, read_out
from pactrain.certification.prior_check import initial_caveats
from pactrain.problem.batches import TensorBatches
from pactrain.problem.constant_answer import best_constant
from pactrain.problem.named_losses import LOSSES
from tests.attacks.networks import coin_flips, memorise, network, separable

CE, MSE = LOSSES["cross_entropy"], LOSSES["mse"]


def test_it_is_ridge_regression_from_the_inputs_of_the_last_layer() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 3, generator=g), torch.randn(40, 2, generator=g)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    with torch.no_grad():
        found = read_out(model, [(x[:25], y[:25]), (x[25:], y[25:])], MSE)
        z, targets = model[:2](x).double().numpy(), y.double().numpy()
    z = (z - z[:20].mean(0)) / z[:20].std(0, ddof=1) / np.sqrt(5)
    centred = targets[:20] - targets[:20].mean(0)
    weights = np.linalg.solve(z[:20].T @ z[:20] + RIDGE * np.eye(5), z[:20].T @ centred)
    expected = ((targets[:20].mean(0) + z[20:] @ weights - targets[20:]) ** 2).sum(1)
    assert found is not None
    assert found[0].numpy() == pytest.approx(expected)
    assert found[1].numpy() == pytest.approx(((targets[:20].mean(0) - targets[20:]) ** 2).sum(1))


class Twice(nn.Module):
    """A layer that sees twice as many rows as there are targets."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(torch.cat([x, x]))[: len(x)]
        return out


@pytest.mark.parametrize("model", [nn.Flatten(), Twice()], ids=["no layer", "other rows"])
def test_features_that_are_not_known(model: nn.Module) -> None:
    assert read_out(model, [coin_flips(30)], CE) is None


@pytest.mark.parametrize("count", [1, 2, FEWEST - 1])
def test_nothing_is_read_out_of_few_examples(count: int) -> None:
    assert read_out(network(), [coin_flips(count)], CE) is None


def test_features_of_which_one_is_constant_or_none_is_a_number() -> None:
    x, y = separable(60)
    for value in (1.0, float("nan")):
        found = read_out(nn.Linear(20, 2), [(torch.cat([x[:, :19], torch.full((60, 1), value)], 1), y)], CE)
        assert found is not None
        assert clearly_better(*found)


def test_better_by_more_than_three_standard_errors() -> None:
    gain = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(50)  # the standard error is 0.1
    assert clearly_better(-0.32 - gain, torch.zeros(100))
    assert not clearly_better(-0.30 - gain, torch.zeros(100))
    assert not clearly_better(torch.zeros(9), torch.zeros(9))


@pytest.mark.parametrize("frozen", [False, True])
def test_features_that_know_random_labels_are_told_from_fresh_ones(frozen: bool) -> None:
    rows = coin_flips(300)
    batches, constant = TensorBatches(rows, 64), best_constant(TensorBatches(rows, 64), CE)
    known, fresh = network(), network(seed=7)
    memorise(known, rows)
    known[0].requires_grad_(not frozen)
    model = nn.Sequential(known[0], known[1], network(seed=7)[2])
    (caveat,) = initial_caveats(Posterior(model), batches, CE, constant, seed=0)
    assert "features that know more" in caveat.reason
    assert initial_caveats(Posterior(fresh), batches, CE, constant, seed=0) == []


def orthogonal(seed: int) -> nn.Module:
    model = network(seed=seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        nn.init.orthogonal_(next(model.parameters()))
    return model


@pytest.mark.parametrize("make", [lambda seed: network(seed=seed), orthogonal], ids=["uniform", "orthogonal"])
def test_fresh_features_of_data_that_is_easy_to_tell_are_not_suspected(make) -> None:  # type: ignore[no-untyped-def]
    for seed in range(15):
        batches = TensorBatches(separable(200, seed=seed), 64)
        assert initial_caveats(Posterior(make(seed)), batches, CE, best_constant(batches, CE), seed=0) == []
