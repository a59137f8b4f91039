"""Data far from the size of one: units to train in, which the weights take over."""

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.auto import AUTO
from pactrain.batches import as_batches
from pactrain.ends import find_ends
from pactrain.losses import LOSSES, Loss
from pactrain.posterior import Posterior
from pactrain.problem import Problem
from pactrain.rounding import priced_priors
from pactrain.runs import load_posterior
from pactrain.units import BASE, LARGEST, UNSCALED, Units, find_units

EACH = math.log(2 * LARGEST + 1)


def perceptron(inputs: int = 4, outputs: int = 3) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 20), nn.ReLU(), nn.Linear(20, outputs))


def table(rows: int = 120, *, numbers: bool = False) -> tuple[Tensor, Tensor]:
    """Columns around 700, 10, 1 and .02; classes, or numbers around 200, that depend on all of them."""
    source = torch.Generator().manual_seed(1)
    z = torch.randn(rows, 4, generator=source)
    x = (z + 2) * torch.tensor([350.0, 5.0, 0.5, 0.01])
    if numbers:
        return x, 200 + 50 * z.sum(1)
    return x, (z.sum(1) > 0).long() + (z[:, 0] > 1)


def problem(x: Tensor, y: Tensor, loss: Loss = LOSSES["cross_entropy"]) -> Problem:
    batches = as_batches((x, y), batch_size=32, device=torch.device("cpu"))
    return Problem(batches, None, next(iter(batches.ordered())), loss, loss)


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
    assert ends_of(nn.Sequential(nn.Linear(4, 2), nn.Flatten(), nn.Linear(6, 2)), 3, 4)[0] is None  # rows of rows
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


@pytest.mark.parametrize("network", [Noisy, Strict])
def test_networks_that_do_not_bear_units_are_left_alone(network: type[nn.Module]) -> None:
    model = network()
    before = copy.deepcopy(model.state_dict())
    assert not find_units(model, problem(*table()), seed=0).taken
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


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


# -- the posterior in other units --------------------------------------------------------------------------------------


def moved(model: nn.Module) -> Posterior:
    """A posterior away from its prior."""
    posterior = Posterior(model)
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in (*posterior.means(), posterior.log_std):
            p.add_(0.1 * torch.randn(p.shape, generator=source))
    return posterior


def in_units(posterior: Posterior) -> dict[str, Tensor]:
    scales = {"0.weight": torch.pow(BASE, torch.arange(-2.0, 2.0)).expand(20, 4), "2.bias": torch.full((3,), 16.0)}
    with torch.no_grad():
        for name, scale in scales.items():
            posterior.model.get_parameter(name).mul_(scale)
    posterior.change_units(scales)
    return scales


def test_the_divergence_and_its_gradients_are_those_of_the_weights_in_their_units() -> None:
    posterior, plain = moved(perceptron()), moved(perceptron())
    scales = in_units(posterior)
    assert posterior.kl().item() == pytest.approx(plain.kl().item(), rel=1e-5)
    assert torch.allclose(posterior.kl_by_group(), plain.kl_by_group(), rtol=1e-5)
    noise = plain.fresh_noise(torch.Generator().manual_seed(0))
    prior = plain.prior_log_std.detach()
    assert posterior.log_ratio(noise, prior) == pytest.approx(plain.log_ratio(noise, prior), rel=1e-4)
    for one in (posterior, plain):
        one.kl().backward()
    assert torch.allclose(posterior.log_std.grad, plain.log_std.grad, rtol=1e-3, atol=1e-4)  # type: ignore[arg-type]
    for name in posterior.names:
        found, expected = (one.model.get_parameter(name).grad for one in (posterior, plain))
        assert found is not None
        assert expected is not None
        assert torch.allclose(found * scales.get(name, torch.ones(())), expected, rtol=1e-4, atol=1e-5)


def test_draws_of_prior_and_posterior_are_the_same_networks() -> None:
    posterior, plain = moved(perceptron()), moved(perceptron())
    scales = in_units(posterior)
    noise, prior = plain.fresh_noise(torch.Generator().manual_seed(0)), plain.prior_log_std.detach()
    with posterior.prior_draw(prior, noise), plain.prior_draw(prior, noise):
        for name in plain.names:
            own = plain.model.get_parameter(name) * scales.get(name, torch.ones(()))
            assert torch.allclose(posterior.model.get_parameter(name), own, rtol=1e-5)
    stacked, expected = (one.prior_networks([(noise, prior)]) for one in (posterior, plain))
    for name in plain.names:
        assert torch.allclose(stacked[name], expected[name] * scales.get(name, torch.ones(())), rtol=1e-5)
    drawn, theirs = (one.draw(torch.Generator().manual_seed(1)) for one in (posterior, plain))
    for name in plain.names:
        assert torch.allclose(drawn[name], theirs[name] * scales.get(name, torch.ones(())), rtol=1e-4)


def test_units_go_with_the_state_dict() -> None:
    posterior, other = moved(perceptron()), Posterior(perceptron())
    in_units(posterior)
    posterior.unit_nats = 3.5
    other.load_state_dict(posterior.state_dict())
    assert other.kl().item() == pytest.approx(posterior.kl().item())
    assert other.unit_nats == 3.5


# -- fit ---------------------------------------------------------------------------------------------------------------


def test_fit_learns_from_columns_of_any_size(tmp_path: Path) -> None:
    x, y = table(400)
    test = x[200:], y[200:]
    result = pactrain.fit(perceptron(), (x[:200], y[:200]), test=test, budget="500 epochs", out=tmp_path / "run")
    assert result.metrics["test"]["accuracy"] > 0.9
    with torch.no_grad():  # the network takes raw rows
        assert float((result.model(test[0]).argmax(1) == test[1]).float().mean()) == pytest.approx(
            result.metrics["test"]["accuracy"]
        )
    assert any("inputs in units of 0.016 to 1,024" in note for note in result.certificate.notes)
    assert result.notes == []
    assert result.config["units"]["target"] == 1
    kept = load_posterior(tmp_path / "run", Posterior(perceptron()))
    assert kept.kl().item() == pytest.approx(result.posterior.kl().item(), rel=1e-5)
    assert kept.unit_nats == result.posterior.unit_nats > 4 * EACH


def test_what_is_certified_of_raw_rows_afterwards_is_what_was_certified() -> None:
    x, y = table(200)
    result = pactrain.fit(perceptron(), (x, y), budget="20 epochs")
    again = pactrain.certify(result.posterior, (x, y), draws=50)
    kl = [next(s for s in c.statements if s.bound == "kl").inputs for c in (result.certificate, again)]
    assert kl[0]["kl"] == pytest.approx(kl[1]["kl"], rel=1e-4)
    assert kl[0]["prior_nats"] == kl[1]["prior_nats"] > 4 * EACH
    assert result.certificate.hashes == again.hashes
    assert result.certificate.recheck()
    assert all(s.label == "certified" for s in result.certificate.statements if s.bound == "kl")


def test_targets_far_from_one() -> None:
    x, y = table(400, numbers=True)
    result = pactrain.fit(perceptron(outputs=1), (x[:200], y[:200]), test=(x[200:], y[200:]), budget="500 epochs")
    assert result.metrics["test"]["rmse"] < 40  # of a deviation of 100
    with torch.no_grad():
        mse = float((result.model(x[200:])[:, 0] - y[200:]).square().mean())
    assert result.metrics["test"]["loss"] == pytest.approx(mse, rel=1e-4)
    assert any("targets in units of 256, so that losses are in units of 65,536" in n for n in result.certificate.notes)


def test_rows_of_the_prior_choose_units_free_of_charge() -> None:
    x, y = table(200)
    result = pactrain.fit(perceptron(), (x, y), prior_data=0.5, budget="5 epochs")
    assert result.config["units"]["inputs"][0] == 1024
    (_, price) = priced_priors(result.posterior)["fixed in advance"]
    assert price == 0


@pytest.mark.parametrize(
    "more",
    [{"preset": AUTO.replace(units=False)}, {"preset": "authors"}, {"prior": pactrain.Prior(std=0.05)}],
    ids=["by hand", "authors", "own std"],
)
def test_where_no_units_are_taken(more: dict[str, Any]) -> None:
    result = pactrain.fit(perceptron(), table(), budget="1 epoch", **more)
    assert "units" not in result.config
    assert result.posterior.units is None
    assert result.posterior.unit_nats == 0


def test_a_run_in_units_that_was_interrupted_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    x, y = table(200)
    whole, model = pactrain.fit(perceptron(), (x, y), budget="12 epochs"), perceptron()

    def stop(event: Any) -> None:
        if event.phase == "train" and event.done == 5:
            raise KeyboardInterrupt

    assert pactrain.fit(model, (x, y), budget="12 epochs", out=tmp_path / "run", callbacks=[stop]).interrupted
    with torch.no_grad():
        assert float(model(x).abs().max()) < 100  # it takes raw rows
    resumed = pactrain.fit(perceptron(), (x, y), budget="12 epochs", out=tmp_path / "run", resume=True)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name])


def test_the_same_network_may_go_on_before_the_first_checkpoint(tmp_path: Path) -> None:
    x, y = table(200)
    model = perceptron()

    def stop(event: Any) -> None:
        if event.phase == "train":
            raise KeyboardInterrupt

    assert pactrain.fit(model, (x, y), budget="3 epochs", out=tmp_path / "run", callbacks=[stop]).interrupted
    assert not pactrain.fit(model, (x, y), budget="3 epochs", out=tmp_path / "run", resume=True).interrupted


def test_training_again_goes_on_from_what_was_learned() -> None:
    x, y = table(200)
    model = perceptron()
    first = pactrain.fit(model, (x, y), budget="300 epochs").metrics["train"]["loss"]
    assert pactrain.fit(model, (x, y), budget="5 epochs").metrics["train"]["loss"] < 1.2 * first + 0.1


def test_callbacks_see_a_network_that_takes_raw_rows() -> None:
    x, y = table(200)
    model, seen = perceptron(), list[tuple[float, float]]()

    def look(event: Any) -> None:
        if event.phase == "train":
            with torch.no_grad():
                own = float((model(x).argmax(1) == y).double().mean())
            seen.append((own, event.values["train"]["accuracy"]))

    watched = pactrain.fit(model, (x, y), budget="20 epochs", callbacks=[look])
    assert [own for own, _ in seen] == pytest.approx([said for _, said in seen])
    alone = pactrain.fit(perceptron(), (x, y), budget="20 epochs")
    for name, weight in watched.model.state_dict().items():
        assert torch.equal(weight, alone.model.state_dict()[name])


def test_the_kind_of_the_test_set_changes_nothing() -> None:
    x, y = table(300)
    loader = DataLoader(TensorDataset(x[200:], y[200:]), batch_size=30)
    by_loader, by_rows = (
        pactrain.fit(perceptron(), (x[:200], y[:200]), test=test, budget="10 epochs")
        for test in (list(loader), (x[200:], y[200:]))
    )
    assert by_loader.metrics["test"] == pytest.approx(by_rows.metrics["test"])
    assert by_loader.history[-1]["test"] == pytest.approx(by_rows.history[-1]["test"])


def test_rows_that_only_the_test_set_has_take_the_label_away() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = perceptron()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(torch.where(x > 3000, 0.0, x))  # type: ignore[no-any-return]

    x, y = table(300)
    test = x[200:].clone()
    test[:60, 0] = 4000.0
    result = pactrain.fit(Cut(), (x[:200], y[:200]), test=(test, y[200:]), budget="100 epochs")
    assert any("in a way of its own" in note for note in result.certificate.notes)
    assert not any(s.label == "certified" for s in result.certificate.statements)


def test_other_kinds_of_test_batches_are_read_as_they_are() -> None:
    x, y = table(120)
    batches = [{"input": x[100:], "labels": y[100:]}]
    assert pactrain.fit(perceptron(), (x[:100], y[:100]), test=batches, budget="1 epoch").metrics["test"]["n"] == 20


def test_columns_that_hardly_vary_are_named() -> None:
    x, y = table(200)
    x[:, 1] = 2000 + x[:, 2]
    x[:, 3] = 700.0  # a constant is none
    notes = pactrain.fit(perceptron(), (x, y), budget="1 epoch").notes
    assert any("Column 1 of the inputs hardly varies" in note for note in notes)


def test_no_units_are_nothing() -> None:
    given = problem(*table())
    assert Units().applied(given) is given
    assert Units().remarks() == []
