"""Which networks and losses bear data in other units."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.units import Units
from pactrain.rules.choose_units import UNSCALED, find_units
from pactrain.runtime.gave_up import collected
from tests.rules.raw_tables import perceptron, problem, table


class Twice(nn.Module):
    """Uses its inputs beside the first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu() + x)  # type: ignore[no-any-return]


def units_of(model: nn.Module, x: Tensor, y: Tensor, loss: Loss = LOSSES["mse"]) -> Units:
    return find_units(model, problem(x, y, loss), seed=0)


def ends_of(model: nn.Module, *shape: int) -> tuple[Any, Any]:
    """The layers that take units of inputs and of targets over."""
    outputs = [p for p in model.parameters() if p.ndim > 1][-1].shape[0]
    source = torch.Generator().manual_seed(0)
    x, y = (100 * torch.randn(9, *s, generator=source) for s in (shape, (outputs,)))
    found = units_of(model, x, y)
    return found.first if found.inputs is not None else None, found.last if found.target != 1 else None


def test_ends_of_networks() -> None:
    model = perceptron()
    assert ends_of(model, 4) == (model[0], model[2])
    flat = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    assert ends_of(flat, 3, 2, 2) == (flat[1], flat[1])
    images = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(20, 2))
    assert ends_of(images, 3, 4, 4) == (images[0], images[3])
    assert ends_of(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2)), 4)[0] is None  # normalised anyway
    twice = Twice()
    assert ends_of(twice, 4) == (None, twice.last)
    bounded = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
    assert ends_of(bounded, 4) == (bounded[0], None)
    frozen = perceptron()
    frozen[0].weight.requires_grad_(False)
    assert ends_of(frozen, 4) == (None, frozen[2])
    grown = nn.Sequential(nn.ConvTranspose2d(3, 5, 2), nn.Flatten(), nn.Linear(45, 2))
    assert ends_of(grown, 3, 2, 2) == (None, grown[2])
    rows = nn.Sequential(nn.Linear(4, 2), nn.Flatten(), nn.Linear(6, 2))
    assert ends_of(rows, 3, 4) == (None, rows[2])  # rows of rows
    with collected() as notes:
        assert ends_of(perceptron(), 7) == (None, None)  # takes no such rows: training will tell
    assert len(notes) == 1


def test_classes_have_no_unit_and_nor_have_losses_that_change_with_it() -> None:
    x, y = table(numbers=True)
    assert units_of(perceptron(), x, y.long() % 3, LOSSES["cross_entropy"]).target == 1
    one = perceptron(outputs=1)
    assert units_of(one, x, y, LOSSES["huber"]).target == 1
    capped = Loss("l1_capped", lambda o, t: ((o.reshape(t.shape) - t).abs() / 50).clamp(max=1), "regression", high=1.0)
    assert units_of(one, x, y, capped).target == 1
    assert [units_of(one, x, y, LOSSES[k]).degree for k in ("mse", "l1")] == [2, 1]


def test_what_initial_weights_hide_is_seen() -> None:
    hidden = Twice()
    nn.init.zeros_(hidden.last.weight)
    assert ends_of(hidden, 4)[0] is None


class Around(nn.Module):
    """A network inside of another."""

    def __init__(self) -> None:
        super().__init__()
        self.net = perceptron()


class Clamped(Around):
    """Does with large inputs what no random ones would show."""

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.clamp(-500, 500))  # type: ignore[no-any-return]


def test_rows_that_a_network_treats_in_a_way_of_its_own_keep_their_units() -> None:
    found = find_units(Clamped(), problem(*table()), seed=0)
    assert not found.taken
    assert found.nats == pytest.approx(-math.log(UNSCALED))


class Noisy(Around):
    """Does with inputs what shows only in training."""

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x + 25 * torch.randn_like(x) if self.training else x)  # type: ignore[no-any-return]


class Strict(Around):
    """Does not take inputs of some sizes."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 4 and float(x.max()) < 100:
            raise ValueError("these are not the inputs that I know")
        return self.net(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("network", "told"), [(Noisy, 0), (Strict, 1)])
def test_networks_that_do_not_bear_units_are_left_alone(network: type[nn.Module], told: int) -> None:
    model = network()
    before = copy.deepcopy(model.state_dict())
    with collected() as notes:
        assert not find_units(model, problem(*table()), seed=0).taken
    assert len(notes) == told
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


class Gained(nn.Linear):
    """A layer with a gain of its own, which units of the answers must not multiply as well."""

    def __init__(self) -> None:
        super().__init__(20, 1)
        self.gain = nn.Parameter(torch.full((1,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * super().forward(x)


def test_other_parameters_of_the_last_layer_are_let_be() -> None:
    model, (x, y) = perceptron(outputs=1), table(numbers=True)
    model[2] = Gained()
    given = problem(x, y, LOSSES["mse"])
    units = find_units(model, given, seed=0)
    with torch.no_grad(), units.in_use(model):
        before = model(units.pair((x, y))[0])
    assert units.target == 256
    assert torch.allclose(model(x), 256 * before)


@pytest.mark.parametrize("after", [nn.BatchNorm1d(1, affine=False), nn.Hardtanh(-100.0, 100.0)])
def test_answers_that_are_changed_after_the_last_layer_have_no_unit(after: nn.Module) -> None:
    x, y = table(numbers=True)
    found = find_units(nn.Sequential(perceptron(outputs=1), after), problem(x, y, LOSSES["mse"]), seed=0)
    assert found.target == 1
    assert found.inputs is not None


def test_a_loss_that_changes_at_the_size_of_the_targets_has_no_unit() -> None:
    x, y = table(numbers=True)
    capped = Loss("capped", lambda o, t: (o.reshape(t.shape) - t).square().clamp(max=10_000), "regression")
    assert find_units(perceptron(outputs=1), problem(x / 1000, y, capped), seed=0).target == 1
