"""A prior that has seen the counted examples is told from one that has not."""

import math
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.certification.prior_check import (
    CHANCE,
    EXAMPLES,
    SHUFFLES,
    _better,
    _holding,
    _others_shuffled,
    initial_caveats,
    prior_caveats,
)
from pactrain.problem.batches import TensorBatches
from pactrain.problem.constant_answer import ConstantAnswer, best_constant
from pactrain.problem.named_losses import LOSSES

CE, MSE = LOSSES["cross_entropy"], LOSSES["mse"]


def network(outputs: int = 2, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, outputs)).eval()


def labelled(model: nn.Module, n: int = 200) -> tuple[Tensor, Tensor]:
    """Rows with the answers of a network, a twentieth of them wrong."""
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        y = model(x).argmax(1)
    y[::20] = 1 - y[::20]
    return x, y


def caveats(posterior: Posterior, data: tuple[Tensor, Tensor], loss: Any = CE, *, seed: int = 0) -> list[str]:
    batches = TensorBatches(data, 64)
    return [c.reason for c in prior_caveats(posterior, batches, loss, best_constant(batches, loss), seed=seed)]


def test_weights_that_know_the_answers() -> None:
    model = network()
    posterior, (x, y) = Posterior(model, Prior(std=0.1)), labelled(model)
    (reason,) = caveats(posterior, (x, y))
    majority = max(float(y.double().mean()), 1 - float(y.double().mean()))
    assert f"(95.0 % correct; a constant answer: {100 * majority:.1f} %)" in reason
    with torch.no_grad():  # it is the prior's mean that is judged, wherever the posterior is
        before = [p.zero_().clone() for p in posterior.means()]
    assert caveats(posterior, (x, y)) == [reason]
    assert all(map(torch.equal, posterior.means(), before))


def test_fresh_weights_and_stated_sources() -> None:
    model = network()
    data = labelled(model)
    assert caveats(Posterior(network(seed=1), Prior(std=0.1)), data) == []
    assert caveats(Posterior(model, Prior(std=0.1, source="other data")), data) == []
    posterior = Posterior(model, Prior(std=0.1))
    assert prior_caveats(posterior, TensorBatches(data, 64), CE, None, seed=0) == []


def test_weights_whose_order_does_not_matter_are_cleared() -> None:
    """Better than a constant answer by far, but so is the same network with its entries in any other order."""
    model = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    assert caveats(Posterior(model, Prior(std=0.1)), (x, x.sum(1, keepdim=True)), MSE) == []


def test_weights_that_beat_their_shuffles_but_not_a_constant_are_cleared() -> None:
    """The targets are less than half of the answers: a constant is nearer, but any other order of the weights is further off."""
    torch.manual_seed(0)
    model, x = nn.Linear(12, 1, bias=False), torch.randn(400, 12)
    with torch.no_grad():
        y = 0.45 * model(x)
    assert caveats(Posterior(model, Prior(std=0.1)), (x, y), MSE) == []


def test_regression() -> None:
    model = network(1)
    x = torch.randn(100, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        y = model(x) + 0.05 * torch.randn(100, 1, generator=torch.Generator().manual_seed(2))
    (reason,) = caveats(Posterior(model, Prior(std=0.1)), (x, y), MSE)
    with torch.no_grad():
        loss = float((model(x) - y).square().mean())
    assert f"(loss {loss:.3g}; a constant answer: {float(y.var(correction=0)):.3g})" in reason


# -- better than chance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "share"), [(50, 0.5), (200, 0.3), (1000, 0.1)])
def test_the_errors_of_chance(n: int, share: float) -> None:
    constant = ConstantAnswer(torch.tensor([share]), torch.tensor([1.0]))
    last = max(k for k in range(n) if stats.binom.cdf(k, n, share) < 0.001)
    assert CHANCE == 0.001
    for wrong in (last - 1, last, last + 1):
        assert _better({"accuracy": 1 - wrong / n, "n": n, "loss": 0.0}, constant) is (wrong <= last)


def test_the_losses_of_chance() -> None:
    losses = torch.tensor([1.0, 3.0, 8.0, 4.0], dtype=torch.float64)
    limit = 4 - 3.1 * float(losses.numpy().std()) / math.sqrt(25)
    for errors in (None, torch.tensor([0.5])):
        constant = ConstantAnswer(errors, losses)
        assert not _better({"loss": limit + 1e-9, "n": 25}, constant)
        assert _better({"loss": limit - 1e-9, "n": 25}, constant)
    assert _better({"accuracy": 0.0, "loss": limit - 1e-9, "n": 25}, ConstantAnswer(None, losses))


def test_a_loss_as_small_as_chance_allows_is_none() -> None:
    constant = ConstantAnswer(None, torch.tensor([2.0, 2.0]))
    assert not _better({"loss": 2.0, "n": 25}, constant)
    assert _better({"loss": math.nextafter(2.0, 0), "n": 25}, constant)


# -- shuffling -----------------------------------------------------------------------------------------------------------


class Counting(nn.Module):
    """A linear map that keeps the weights it is used with, and how many rows it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 2), nn.Parameter(torch.linspace(0.5, 1.5, 2))
        self.seen: list[tuple[int, Tensor, Tensor]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append((len(x), self.first.weight.detach().clone(), self.second.detach().clone()))
        out: Tensor = self.first(x) * self.second
        return out


def test_each_tensor_is_shuffled_by_itself() -> None:
    torch.manual_seed(0)
    model = Counting().eval()
    x = torch.randn(620, 8)
    with torch.no_grad():
        y = model(x).argmax(1)
    posterior = Posterior(model, Prior(std=0.1))
    posterior.units = torch.linspace(1.0, 3.0, posterior.num_weights)
    scales = posterior.units[posterior.parameter_slices[posterior.names.index("first.weight")]].view(2, 8)
    model.seen.clear()
    batches = TensorBatches((x, y), 64)
    assert len(prior_caveats(posterior, batches, CE, best_constant(batches, CE), seed=3)) == 1
    (whole, own, _), (subset, again, _), *shuffled = model.seen
    assert (whole, subset, len(shuffled)) == (620, EXAMPLES, SHUFFLES) == (620, 500, 200)
    assert torch.equal(own, model.first.weight) and torch.equal(again, own)  # noqa: PT018
    kept = (own / scales).flatten().sort().values
    for rows, weight, _ in shuffled:
        assert rows == 500
        torch.testing.assert_close((weight / scales).flatten().sort().values, kept)
    assert len({tuple(weight.flatten().tolist()) for _, weight, _ in shuffled}) == SHUFFLES
    twice = {second[0].item() for _, _, second in shuffled}
    assert len(twice) == 2  # of two entries there are two orders


def test_another_seed_shuffles_otherwise() -> None:
    model = Counting().eval()
    x = torch.randn(100, 8)
    with torch.no_grad():
        y = model(x).argmax(1)
    orders = []
    for seed in (0, 0, 1):
        model.seen.clear()
        caveats(Posterior(model, Prior(std=0.1)), (x, y), seed=seed)
        orders.append(model.seen[2][1])
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


def test_weights_are_put_back() -> None:
    posterior = Posterior(network(), Prior(std=0.1))
    before = [p.detach().clone() for p in posterior.means()]
    with torch.no_grad(), _holding(posterior, torch.arange(float(posterior.num_weights))) as model:
        assert torch.cat([p.reshape(-1) for p in posterior.means()]).tolist() == list(range(posterior.num_weights))
        assert model is posterior.model
    assert all(map(torch.equal, posterior.means(), before))


class Holding(nn.Module):
    """A layer to train, a frozen weight, and buffers of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.frozen = nn.Parameter(torch.arange(20.0), requires_grad=False)
        self.register_buffer("values", torch.arange(30.0))
        self.register_buffer("pair", torch.tensor([1.0, 2.0]))
        self.register_buffer("number", torch.tensor(3.0))
        self.register_buffer("whole", torch.arange(9))


def test_frozen_weights_and_buffers_are_shuffled_and_put_back() -> None:
    model = Holding()
    posterior, before = Posterior(model), {k: v.clone() for k, v in model.state_dict().items()}
    pairs = set()
    for seed in range(8):
        with torch.no_grad(), _others_shuffled(posterior, torch.Generator().manual_seed(seed)):
            inside = {k: v.clone() for k, v in model.state_dict().items()}
            pairs.add(tuple(inside["pair"].tolist()))
        for name in ("frozen", "values"):
            assert not torch.equal(inside[name], before[name])
            assert torch.equal(inside[name].sort().values, before[name])
        assert all(torch.equal(inside[k], before[k]) for k in ("layer.weight", "layer.bias", "number", "whole"))
        assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert pairs == {(1.0, 2.0), (2.0, 1.0)}


def test_a_network_without_a_known_constant_is_cleared() -> None:
    assert not _better({"n": 10, "loss": 0.0}, ConstantAnswer(None, None))


def test_the_network_that_a_priors_training_begins_with() -> None:
    model = network()
    data = TensorBatches(labelled(model), 64)
    constant = best_constant(data, CE)
    found = initial_caveats(Posterior(model), data, CE, constant, seed=0)
    assert "build the network anew" in found[0].reason
    assert initial_caveats(Posterior(network(seed=5)), data, CE, constant, seed=0) == []
