"""Units for data far from the size of one."""

import copy
import math

import pytest
import torch
from torch import nn

import pactrain
from pactrain.problem.named_losses import LOSSES
from pactrain.rules.choose_units import UNSCALED, find_units
from tests.rules.raw_tables import EACH, perceptron, problem, table


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
    assert scaled.loss.unit == 256


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
