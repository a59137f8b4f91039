"""Units for data far from the size of one, and which networks and losses bear them."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.problem.losses import LOSSES, Loss
from pactrain.rules.choose_units import UNSCALED, find_units
from pactrain.rules.network_ends import find_ends
from pactrain.runtime.gave_up import collected
from tests.raw_tables import EACH, perceptron, problem, table


def test_units_are_the_nearest_powers_of_four() -> None:
    found = find_units(perceptron(), problem(*table()), seed=0)
    assert found.inputs is not None
    assert found.inputs.tolist() == [1024.0, 16.0, 1.0, 4.0**-3]  # sizes 790, 11, 1.1, .022
    assert found.target == 1
    assert found.nats == pytest.approx(4 * EACH - math.log((1 - UNSCALED) / 4))


def test_columns_of_one_size_share_a_unit_and_its_price() -> None:
    x = 200 * torch.rand(50, 4, generator=torch.Generator().manual_seed(0))
    found = find_units(perceptron(), problem(x, torch.zeros(50).long()), seed=0)
    assert found.inputs is not None
    assert found.inputs.tolist() == [64.0] * 4  # 115 lies between 64 and 256, nearer to 64 by its logarithm
    assert found.nats == pytest.approx(EACH - math.log((1 - UNSCALED) / 4))


def test_data_of_about_unit_size_keeps_its_bits_and_pays_a_hundredth_of_a_nat() -> None:
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    x[:, 3] = 0.0
    x[7, 3] = 1.0  # rare, not small
    found = find_units(perceptron(), problem(x, torch.zeros(50).long()), seed=0)
    assert not found.taken
    assert found.nats == pytest.approx(-math.log(0.99))
    assert find_units(perceptron(), problem(x, torch.zeros(50).long()), seed=0, free=True).nats == 0


def test_a_network_that_takes_the_units_over_computes_the_same_bits() -> None:
    model, (x, y) = perceptron(outputs=1), table(numbers=True)
    given = problem(x, y, LOSSES["mse"])
    units = find_units(model, given, seed=0)
    assert units.target == 256
    scaled = units.applied(given)
    with torch.no_grad():
        with units.in_use(model):
            model[0].weight += 1.0  # as if it were trained
            before = model(scaled.batches.tensors[0])  # type: ignore[attr-defined]
        assert torch.equal(model(x), 256 * before)
    assert scaled.loss.unit == 256  # type: ignore[union-attr]


def test_a_network_that_was_not_trained_in_the_block_keeps_its_weights() -> None:
    model = perceptron()
    units = find_units(model, problem(*table()), seed=0)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="before training"), units.in_use(model):
        raise ValueError("before training")
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_a_network_that_training_did_not_change_takes_the_units_over_too() -> None:
    """Random features, say, under `torch.no_grad()`: what is certified is a network that takes rows as they come."""
    model, (x, y) = perceptron(), table()
    units = find_units(model, problem(x, y), seed=0)
    with units.in_use(model):
        before = model(units.pair((x, y))[0])
    assert torch.equal(model(x), before)


def test_fresh_networks_are_not_taken_for_trained_ones() -> None:
    """Answers to raw rows are large, and by chance often nearer to large targets than answers around zero are."""
    x, y = table(numbers=True)
    y = 200 + 50 * torch.randn(len(y), generator=torch.Generator().manual_seed(0))  # nothing can be known of them
    for seed in range(30):
        torch.manual_seed(seed)
        assert not find_units(nn.Linear(4, 1), problem(x, y, LOSSES["mse"]), seed=0).ready
    x, y = table(numbers=True)
    fitted = nn.Linear(4, 1)
    with torch.no_grad():
        ones = torch.cat([x, torch.ones(len(x), 1)], 1)
        solution = torch.linalg.lstsq(ones.double(), y.double()[:, None]).solution
        fitted.weight.copy_(solution[:4].T)
        fitted.bias.copy_(solution[4])
    assert find_units(fitted, problem(x, y, LOSSES["mse"]), seed=0).ready


# -- which networks --------------------------------------------------------------------------------------------------


class Twice(nn.Module):
    """Uses its inputs beside the first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu() + x)  # type: ignore[no-any-return]


def ends_of(model: nn.Module, *shape: int) -> tuple[Any, Any]:
    outputs = [p for p in model.parameters() if p.ndim > 1][-1].shape[0]
    found = find_ends(model, torch.zeros(5, *shape), torch.zeros(5, outputs), LOSSES["mse"], seed=0)
    return found.first, found.last


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
    assert ends_of(perceptron(), 7) == (None, None)  # takes no such rows: training will tell


def test_classes_have_no_unit_and_nor_have_losses_that_change_with_it() -> None:
    x, y = table(numbers=True)
    assert find_ends(perceptron(), x, y.long(), LOSSES["cross_entropy"], seed=0).last is None
    one = perceptron(outputs=1)
    assert find_ends(one, x, y, LOSSES["huber"], seed=0).last is None
    capped = Loss("l1_capped", lambda o, t: ((o.reshape(t.shape) - t).abs() / 50).clamp(max=1), "regression", high=1.0)
    assert find_ends(one, x, y, capped, seed=0).last is None
    assert [find_ends(one, x, y, LOSSES[k], seed=0).degree for k in ("mse", "l1")] == [2, 1]


def test_a_trained_network_goes_on_from_what_it_was() -> None:
    x, y = table(200)
    model = copy.deepcopy(pactrain.fit(perceptron(), (x, y), budget="300 epochs").model)
    with torch.no_grad():
        before, given = model(x), problem(x, y)
        units = find_units(model, given, seed=0)
        assert units.ready
        with units.in_use(model):
            assert torch.equal(model(units.applied(given).batches.tensors[0]), before)  # type: ignore[attr-defined]
        assert torch.equal(model(x), before)
    assert not find_units(perceptron(), problem(x, y), seed=0).ready


def test_what_initial_weights_hide_is_seen() -> None:
    hidden = Twice()
    nn.init.zeros_(hidden.last.weight)
    assert ends_of(hidden, 4)[0] is None


class Clamped(nn.Module):
    """Does with large inputs what no random ones would show."""

    def __init__(self) -> None:
        super().__init__()
        self.net = perceptron()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.clamp(-500, 500))  # type: ignore[no-any-return]


def test_rows_that_a_network_treats_in_a_way_of_its_own_keep_their_units() -> None:
    found = find_units(Clamped(), problem(*table()), seed=0)
    assert not found.taken
    assert found.nats == pytest.approx(-math.log(UNSCALED))


class Noisy(nn.Module):
    """Does with inputs what shows only in training."""

    def __init__(self) -> None:
        super().__init__()
        self.net = perceptron()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x + 25 * torch.randn_like(x) if self.training else x)  # type: ignore[no-any-return]


class Strict(nn.Module):
    """Does not take inputs of some sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = perceptron()

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


def test_columns_that_are_dead_or_rare_are_let_be() -> None:
    x = torch.randn(200, 40, generator=torch.Generator().manual_seed(0))
    x[:, 7] *= 1e-7
    assert not find_units(perceptron(40), problem(x, torch.zeros(200).long()), seed=0).taken
    found = find_units(perceptron(40), problem(250 * x, torch.zeros(200).long()), seed=0)
    assert found.inputs is not None
    assert found.inputs.tolist() == [256.0] * 40
    x[:, 9] = 0.0
    x[0, 9] = 0.001
    again = find_units(perceptron(40), problem(250 * x, torch.zeros(200).long()), seed=0)
    assert again.nats == found.nats == pytest.approx(EACH - math.log((1 - UNSCALED) / 4))


@pytest.mark.parametrize("price", [1e4, 3e4, 3e5])
def test_a_flag_beside_a_price_has_a_unit_of_its_own(price: float) -> None:
    source = torch.Generator().manual_seed(0)
    x = torch.stack([price * torch.rand(200, generator=source), torch.randint(2, (200,), generator=source).float()], 1)
    found = find_units(perceptron(2), problem(x, torch.zeros(200).long()), seed=0)
    assert found.inputs is not None
    assert found.inputs[1] == 1


def test_a_few_huge_numbers_have_a_unit() -> None:
    x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    x[:, 1] = 0.0
    x[:8, 1] = 1e5
    found = find_units(perceptron(2), problem(x, torch.zeros(1000).long()), seed=0)
    assert found.inputs is not None
    assert found.inputs.tolist() == [1.0, 4.0**8]


def test_a_flag_beside_many_large_columns_has_a_unit_of_its_own() -> None:
    source = torch.Generator().manual_seed(0)
    flag = (torch.rand(200, 1, generator=source) < 0.3).float()
    x = torch.cat([1000 * torch.rand(200, 30, generator=source), flag], 1)
    found = find_units(perceptron(31), problem(x, flag[:, 0].long()), seed=0)
    assert found.inputs is not None
    assert found.inputs.tolist() == [*found.inputs[:30].tolist(), 1.0]
    assert float(found.inputs[:30].min()) >= 256


def test_channels_of_images_in_steps_of_255() -> None:
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(20, 2))
    x = torch.randint(0, 256, (40, 3, 4, 4), generator=torch.Generator().manual_seed(0)).float()
    given = problem(x, torch.zeros(40).long())
    units = find_units(model, given, seed=0)
    assert units.inputs is not None
    assert units.inputs.tolist() == [256.0] * 3
    assert float(units.applied(given).batches.tensors[0].max()) <= 1  # type: ignore[attr-defined]
